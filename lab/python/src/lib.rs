//! Tickless for Python: the native part of `lab/python/tickless/`.

// Arguments of Python functions are owned.
#![allow(clippy::needless_pass_by_value)]

mod calls;
mod errors;
mod fleet;
mod machine;
mod table;
mod wait;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        calls::{project, read_trace, replay, report, simulate},
        errors::TicklessError,
        fleet::{Fleet, fleet},
        machine::{Machine, machine_names},
        table::Table,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
