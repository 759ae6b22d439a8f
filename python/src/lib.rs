//! Tickless for Python: the native part of `python/tickless/`.
//!
//! | file | holds |
//! |---|---|
//! | `errors` | exceptions with file, line and cause |
//! | `wait` | long calls, which release the interpreter's lock and end on Ctrl-C |
//! | `table` | results as Arrow, by the PyCapsule interface |
//! | `machine` | machines that can be changed and saved |
//! | `calls` | simulate, replay, project, read_trace, report |
//! | `fleet` | a summary of many traces |
//! | `campaign` | campaigns, for one process and for engines such as Ray |

// Arguments of Python functions are owned.
#![allow(clippy::needless_pass_by_value)]

mod calls;
mod campaign;
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
        campaign::{Campaign, perform_batch},
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
