//! Campaigns, for one process and for engines such as Ray.

use crate::errors::error;
use crate::table::Table;
use crate::wait::{AfterInterrupt, run};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tickless_fleet::campaign::{Cell, Key, Plan};
use tickless_fleet::perform::perform;
use tickless_fleet::row::Outcome;
use tickless_fleet::sweep::{self, Folder, Retry, Session, Shard};

/// A campaign in a folder.
#[pyclass(frozen, module = "tickless")]
pub struct Campaign {
    folder: Arc<Folder>,
    /// Set while an engine works on the campaign.
    session: Mutex<Option<Session<Arc<Folder>>>>,
}

fn retry_if(retry: bool) -> Retry {
    if retry { Retry::Failed } else { Retry::No }
}

#[pymethods]
impl Campaign {
    #[new]
    fn new(spec: PathBuf, out: PathBuf) -> PyResult<Campaign> {
        let plan = Plan::read(&spec).map_err(error)?;
        let folder = Folder::create(&out, plan).map_err(error)?;
        Ok(Campaign { folder: Arc::new(folder), session: Mutex::new(None) })
    }

    /// Performs the missing cells in this process. Returns how many cells were done before, were
    /// performed, and failed.
    #[pyo3(signature = (*, shard = None, retry = false, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        shard: Option<String>,
        retry: bool,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, u64, u64)> {
        let folder = Arc::clone(&self.folder);
        let shard = shard.map(|shard| shard.parse::<Shard>()).transpose();
        let shard = shard.map_err(error)?.unwrap_or(Shard::WHOLE);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
        let pool = pool.map_err(error)?;
        let done = run(py, progress, AfterInterrupt::Wait, move |steps, stop| {
            sweep::run(&folder, shard, retry_if(retry), &pool, stop, steps)
        })?;
        Ok((done.before, done.performed, done.failed))
    }

    /// All results; an error if one is missing.
    fn results(&self, py: Python<'_>) -> PyResult<Table> {
        let folder = Arc::clone(&self.folder);
        let all = run(py, None, AfterInterrupt::Abandon, move |_, _| {
            let mut all = Vec::new();
            let take = |row| {
                all.push(row);
                Ok(())
            };
            sweep::rows(std::slice::from_ref(&*folder), take).map(|_| all)
        })?;
        Table::of_rows(&all)
    }

    /// Writes all results as a .csv file. Returns the number of rows.
    fn merge(&self, py: Python<'_>, to: PathBuf) -> PyResult<u64> {
        let folder = Arc::clone(&self.folder);
        let merged = run(py, None, AfterInterrupt::Wait, move |_, _| {
            sweep::merge(std::slice::from_ref(&*folder), &to)
        })?;
        Ok(merged.rows)
    }

    /// The numbers of cells, of done, failed and missing ones, and of running processes.
    fn status(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
        let status = py.detach(|| self.folder.status()).map_err(error)?;
        Ok((status.cells, status.done, status.failed, status.missing, status.running))
    }

    /// The plan, for engines that perform cells elsewhere.
    fn plan(&self) -> PyResult<String> {
        serde_json::to_string(self.folder.plan()).map_err(error)
    }

    /// Claims the campaign for this process. Returns the missing cells.
    #[pyo3(signature = (*, retry = false))]
    fn begin(&self, py: Python<'_>, retry: bool) -> PyResult<Vec<String>> {
        let folder = Arc::clone(&self.folder);
        let begun = py.detach(|| Session::begin(folder, Shard::WHOLE, retry_if(retry)));
        let begun = begun.map_err(error)?;
        let text = |cell: (Key, Cell)| serde_json::to_string(&cell).map_err(error);
        let missing = begun.missing().map(text).collect();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        missing
    }

    /// Writes outcomes, between `begin` and `end`. Returns the number of failed cells.
    fn add(&self, py: Python<'_>, outcomes: Vec<String>) -> PyResult<u64> {
        let parse = |text: &String| serde_json::from_str::<Outcome>(text).map_err(error);
        let outcomes: Vec<Outcome> = outcomes.iter().map(parse).collect::<PyResult<_>>()?;
        py.detach(|| {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            match &*session {
                Some(session) => session.add(&outcomes).map_err(error),
                None => Err(error("nothing has begun; call begin first")),
            }
        })?;
        Ok(outcomes.iter().filter(|outcome| outcome.error.is_some()).count() as u64)
    }

    /// Releases the campaign.
    fn end(&self) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Performs cells that [`Campaign::begin`] returned, on one thread.
#[pyfunction]
pub fn perform_batch(py: Python<'_>, plan: String, cells: Vec<String>) -> PyResult<Vec<String>> {
    run(py, None, AfterInterrupt::Abandon, move |_, stop| {
        let plan: Plan = serde_json::from_str(&plan)?;
        let work = cells.iter().take_while(|_| !stop.load(Ordering::Relaxed));
        let outcomes = work.map(|text| {
            let (key, cell): (Key, Cell) = serde_json::from_str(text)?;
            serde_json::to_string(&perform(&plan, &cell, key))
        });
        outcomes.collect::<Result<Vec<String>, serde_json::Error>>()
    })
}
