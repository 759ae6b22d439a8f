//! Campaigns, for one process and for engines such as Ray.

use crate::errors::error;
use crate::table::Table;
use crate::wait::{Finishes, Steps, wait};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tickless_fleet::campaign::{Cell, Key, Plan};
use tickless_fleet::perform::perform;
use tickless_fleet::row::{Outcome, Row};
use tickless_fleet::sweep::{Folder, Retry, Session, Shard, merge, rows, run};

/// A campaign in a folder.
#[pyclass(frozen, module = "tickless")]
pub struct Campaign {
    folder: Arc<Folder>,
    /// While an engine works on it.
    session: Mutex<Option<Session<Arc<Folder>>>>,
}

#[pymethods]
impl Campaign {
    #[new]
    fn new(spec: PathBuf, out: PathBuf) -> PyResult<Campaign> {
        let plan = Plan::read(&spec).map_err(error)?;
        let folder = Folder::create(&out, plan).map_err(error)?;
        Ok(Campaign { folder: Arc::new(folder), session: Mutex::new(None) })
    }

    /// Performs what is missing in this process: how many cells were there before, were performed
    /// and failed.
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
        let environment = |name: &str| std::env::var(name).ok();
        let shard = match shard {
            Some(shard) => Shard::find(Some(&shard), environment).map_err(error)?,
            None => Shard::WHOLE,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
        let pool = pool.map_err(error)?;
        let steps = Steps::default();
        let counted = steps.clone();
        let look = move |py: Python<'_>| match &progress {
            Some(progress) => progress.call1(py, (steps.done(),)).map(drop),
            None => Ok(()),
        };
        let retry = if retry { Retry::Failed } else { Retry::No };
        let done = wait(py, Finishes::Yes, look, move |stop| {
            run(&folder, shard, retry, &pool, stop, &counted)
        })?;
        let done = done.map_err(error)?;
        Ok((done.before, done.performed, done.failed))
    }

    /// All results, if none is missing.
    fn results(&self, py: Python<'_>) -> PyResult<Table> {
        let folder = Arc::clone(&self.folder);
        let all = wait(
            py,
            Finishes::No,
            |_| Ok(()),
            move |_| {
                let mut all: Vec<Row> = Vec::new();
                let folders = std::slice::from_ref(&*folder);
                rows(folders, |row| {
                    all.push(row);
                    Ok(())
                })
                .map(|_| all)
            },
        )?;
        Table::of_rows(&all.map_err(error)?)
    }

    /// Writes all results as a .parquet or .csv file; how many rows.
    fn merge(&self, py: Python<'_>, to: PathBuf) -> PyResult<u64> {
        let folder = Arc::clone(&self.folder);
        let merged = wait(
            py,
            Finishes::Yes,
            |_| Ok(()),
            move |_| merge(std::slice::from_ref(&*folder), &to),
        )?;
        Ok(merged.map_err(error)?.rows)
    }

    /// Cells, done, failed, missing and running processes.
    fn status(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
        let status = py.detach(|| self.folder.status()).map_err(error)?;
        Ok((status.cells, status.done, status.failed, status.missing, status.running))
    }

    /// The plan, for those that perform cells elsewhere.
    fn plan(&self) -> PyResult<String> {
        serde_json::to_string(self.folder.plan()).map_err(error)
    }

    /// Claims the campaign for this process, and returns what is missing.
    #[pyo3(signature = (*, retry = false))]
    fn begin(&self, py: Python<'_>, retry: bool) -> PyResult<Vec<String>> {
        let folder = Arc::clone(&self.folder);
        let retry = if retry { Retry::Failed } else { Retry::No };
        let begun = py.detach(|| Session::begin(folder, Shard::WHOLE, retry)).map_err(error)?;
        let text = |cell: (Key, Cell)| serde_json::to_string(&cell).map_err(error);
        let missing = begun.missing().map(text).collect();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        missing
    }

    /// Writes what cells came to. Only between `begin` and `end`.
    fn add(&self, py: Python<'_>, outcomes: Vec<String>) -> PyResult<u64> {
        let parse = |text: &String| serde_json::from_str::<Outcome>(text).map_err(error);
        let outcomes: Vec<Outcome> = outcomes.iter().map(parse).collect::<PyResult<_>>()?;
        let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count() as u64;
        py.detach(|| {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            match &*session {
                Some(session) => session.add(&outcomes).map_err(error),
                None => Err(error("nothing has begun; call begin first")),
            }
        })?;
        Ok(failed)
    }

    /// Lets others work on the campaign.
    fn end(&self) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Performs cells that [`Campaign::begin`] named, on one thread.
#[pyfunction]
pub fn perform_batch(py: Python<'_>, plan: String, cells: Vec<String>) -> PyResult<Vec<String>> {
    let plan: Plan = serde_json::from_str(&plan).map_err(error)?;
    let parse = |text: &String| serde_json::from_str::<(Key, Cell)>(text).map_err(error);
    let cells: Vec<(Key, Cell)> = cells.iter().map(parse).collect::<PyResult<_>>()?;
    let done = wait(
        py,
        Finishes::No,
        |_| Ok(()),
        move |stop| {
            let work = cells.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            work.map(|(key, cell)| perform(&plan, cell, *key)).collect::<Vec<Outcome>>()
        },
    )?;
    done.iter().map(|outcome| serde_json::to_string(outcome).map_err(error)).collect()
}
