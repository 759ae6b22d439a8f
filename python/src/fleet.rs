//! What many traces say as a whole.

use crate::errors::error;
use crate::table::Table;
use crate::wait::{Finishes, Steps, wait};
use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tickless_fleet::fleet::{self as whole, Differs, FIGURES, Figures, Machine, Spread};

/// What many traces say as a whole, as tables and as a page.
#[pyclass(frozen, module = "tickless")]
pub struct Fleet {
    fleet: whole::Fleet,
}

#[pyfunction]
#[pyo3(signature = (paths, *, progress = None))]
pub fn fleet(py: Python<'_>, paths: Vec<PathBuf>, progress: Option<Py<PyAny>>) -> PyResult<Fleet> {
    let steps = Steps::default();
    let look = steps.tell(progress);
    let fleet = wait(py, Finishes::No, look, move |stop| whole::fleet(&paths, stop, &steps))?;
    Ok(Fleet { fleet })
}

#[pymethods]
impl Fleet {
    /// A row for each trace; one that cannot be used has an error and no figures.
    #[getter]
    fn machines(&self) -> PyResult<Table> {
        let all = &self.fleet.machines;
        let number = |of: &dyn Fn(&Figures) -> f64| -> ArrayRef {
            let mut builder = Float64Builder::new();
            all.iter().for_each(|it| builder.append_option(it.figures.as_ref().map(of)));
            Arc::new(builder.finish())
        };
        let mut cpus = Int64Builder::new();
        all.iter().for_each(|it| cpus.append_option(it.figures.as_ref().map(|it| it.cpus.into())));
        let most = |it: &Machine| it.figures.as_ref().map(|it| it.arms_most.clone());
        let mut columns: Vec<(&'static str, ArrayRef)> = vec![
            ("trace", text(all, |it| Some(it.trace.clone()))),
            ("cpus", Arc::new(cpus.finish())),
            ("seconds", number(&|it| it.seconds)),
        ];
        columns.extend(FIGURES.iter().map(|figure| (figure.name, number(&figure.of))));
        columns.push(("arms_most", text(all, most)));
        columns.push(("arms_most_percent", number(&|it| it.arms_most_percent)));
        columns.push(("error", text(all, |it| it.error.clone())));
        Table::of(columns)
    }

    /// How each figure is spread over the machines.
    #[getter]
    fn quantiles(&self) -> PyResult<Table> {
        let all = &self.fleet.quantiles;
        let quantile = |of: fn(&Spread) -> f64| numbers(all, of);
        Table::of(vec![
            ("figure", text(all, |it| Some(it.figure.to_string()))),
            ("unit", text(all, |it| Some(it.unit.to_string()))),
            ("p5", quantile(|it| it.p5)),
            ("p25", quantile(|it| it.p25)),
            ("p50", quantile(|it| it.p50)),
            ("p75", quantile(|it| it.p75)),
            ("p95", quantile(|it| it.p95)),
        ])
    }

    /// The machines that differ most, and why.
    #[getter]
    fn differ(&self) -> PyResult<Table> {
        let all = &self.fleet.differ;
        let number = |of: fn(&Differs) -> f64| numbers(all, of);
        Table::of(vec![
            ("trace", text(all, |it| Some(it.trace.clone()))),
            ("figure", text(all, |it| Some(it.figure.to_string()))),
            ("unit", text(all, |it| Some(it.unit.to_string()))),
            ("value", number(|it| it.value)),
            ("median", number(|it| it.median)),
            ("distance", number(|it| it.distance)),
            ("why", text(all, |it| Some(it.why.clone()))),
        ])
    }

    /// The page with plots.
    fn to_html(&self) -> PyResult<String> {
        whole::page(&self.fleet).map_err(error)
    }

    /// Writes the page.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let write = std::fs::write(&path, self.to_html()?);
        write.map_err(|cause| error(format!("{}: cannot be written: {cause}", path.display())))
    }

    fn __len__(&self) -> usize {
        self.fleet.machines.len()
    }

    fn __repr__(&self) -> String {
        let (all, failed) = (self.fleet.machines.len(), self.fleet.failed());
        format!("<tickless.Fleet of {all} traces, {failed} of which cannot be used>")
    }
}

fn text<T>(all: &[T], of: impl Fn(&T) -> Option<String>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    all.iter().for_each(|it| builder.append_option(of(it)));
    Arc::new(builder.finish())
}

fn numbers<T>(all: &[T], of: fn(&T) -> f64) -> ArrayRef {
    let mut builder = Float64Builder::new();
    all.iter().for_each(|it| builder.append_value(of(it)));
    Arc::new(builder.finish())
}
