//! Tickless for Python: what `python/tickless/` is made of.
//!
//! | file | holds |
//! |---|---|
//! | `errors` | exceptions with file, line and cause |
//! | `wait` | long calls: the interpreter's lock is free, Ctrl-C is heeded, progress is told |
//! | `table` | results as Arrow, by the PyCapsule interface |
//! | `machine` | machines that can be changed and saved |
//! | `calls` | simulate, replay, project, read_trace, report |
//! | `fleet` | what many traces say as a whole |
//! | `campaign` | campaigns, for one process and for engines such as Ray |

// What pyo3 makes of functions.
#![allow(clippy::needless_pass_by_value)]

mod calls;
mod campaign;
mod errors;
mod fleet;
mod machine;
mod table;
mod wait;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TicklessError", module.py().get_type::<errors::TicklessError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<campaign::Campaign>()?;
    module.add_class::<fleet::Fleet>()?;
    module.add_function(wrap_pyfunction!(machine::machine_names, module)?)?;
    module.add_function(wrap_pyfunction!(calls::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(calls::replay, module)?)?;
    module.add_function(wrap_pyfunction!(fleet::fleet, module)?)?;
    module.add_function(wrap_pyfunction!(calls::project, module)?)?;
    module.add_function(wrap_pyfunction!(calls::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(calls::report, module)?)?;
    module.add_function(wrap_pyfunction!(campaign::perform_batch, module)?)?;
    Ok(())
}
