//! A summary of many traces.

use crate::table::{Table, number, text, whole};
use crate::wait::run;
use pyo3::prelude::*;
use std::path::PathBuf;
use tickless_fleet::fleet::{self as traces, Differs, FIGURES, Figures, Spread};

/// A summary of many traces, as tables.
#[pyclass(frozen, module = "tickless")]
pub struct Fleet {
    fleet: traces::Fleet,
}

#[pyfunction]
#[pyo3(signature = (paths, *, progress = None))]
pub fn fleet(py: Python<'_>, paths: Vec<PathBuf>, progress: Option<Py<PyAny>>) -> PyResult<Fleet> {
    let fleet =
        run(py, progress, move |steps, stop| Ok::<_, String>(traces::fleet(&paths, stop, steps)))?;
    Ok(Fleet { fleet })
}

#[pymethods]
impl Fleet {
    /// A row for each trace; one that cannot be used has an error and no figures.
    #[getter]
    fn machines(&self) -> PyResult<Table> {
        let all = || self.fleet.machines.iter();
        let figure =
            |of: &dyn Fn(&Figures) -> f64| number(all().map(|it| it.figures.as_ref().map(of)));
        let mut columns = vec![
            ("trace", text(all().map(|it| Some(&it.trace)))),
            ("cpus", whole(all().map(|it| it.figures.as_ref().map(|it| it.cpus.into())))),
            ("seconds", figure(&|it| it.seconds)),
        ];
        columns.extend(FIGURES.iter().map(|it| (it.name, figure(&it.of))));
        columns
            .push(("arms_most", text(all().map(|it| it.figures.as_ref().map(|it| &it.arms_most)))));
        columns.push(("arms_most_percent", figure(&|it| it.arms_most_percent)));
        columns.push(("error", text(all().map(|it| it.error.as_ref()))));
        Table::of(columns)
    }

    /// How each figure is spread over the machines.
    #[getter]
    fn quantiles(&self) -> PyResult<Table> {
        let all = || self.fleet.quantiles.iter();
        let quantile = |of: fn(&Spread) -> f64| number(all().map(|it| Some(of(it))));
        Table::of(vec![
            ("figure", text(all().map(|it| Some(it.figure)))),
            ("unit", text(all().map(|it| Some(it.unit)))),
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
        let all = || self.fleet.differ.iter();
        let figure = |of: fn(&Differs) -> f64| number(all().map(|it| Some(of(it))));
        Table::of(vec![
            ("trace", text(all().map(|it| Some(&it.trace)))),
            ("figure", text(all().map(|it| Some(it.figure)))),
            ("unit", text(all().map(|it| Some(it.unit)))),
            ("value", figure(|it| it.value)),
            ("median", figure(|it| it.median)),
            ("distance", figure(|it| it.distance)),
            ("why", text(all().map(|it| Some(&it.why)))),
        ])
    }

    fn __len__(&self) -> usize {
        self.fleet.machines.len()
    }

    fn __repr__(&self) -> String {
        let (all, failed) = (self.fleet.machines.len(), self.fleet.failed());
        format!("<tickless.Fleet of {all} traces, {failed} of which cannot be used>")
    }
}
