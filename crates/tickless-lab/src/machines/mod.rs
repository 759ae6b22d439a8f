//! The simulated machines: which there are, where their numbers come from, this host as one of
//! them, and how well the model predicts it.
//!
//! | file | what |
//! |---|---|
//! | `real` | scenes of the machine crate on two real CPUs |
//! | `micro` | prices that can be measured by themselves |
//! | `measured` | this host as a machine's file |
//! | `validate` | what the model predicts of this host, beside what is measured |
//! | `fuzz` | random histories of the timer core on simulated machines |

pub mod fuzz;
pub mod measured;
mod micro;
mod real;
pub mod validate;

use crate::input;
use crate::studies::StudyError;
use std::path::Path;
use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::Spec;

/// A machine by its name, or from a file: whatever is no name and has a dot or a slash in it.
pub fn find(name: &str) -> Result<Spec, StudyError> {
    let wrong = |what| StudyError::Request { what };
    if let Some(spec) = machines::named(name) {
        return spec.map_err(|error| wrong(error.to_string()));
    }
    if !name.contains(['.', '/']) {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(wrong(format!("there is no machine {name}; there are {names}, and files")));
    }
    let text = input::read_text(Path::new(name))
        .map_err(|error| wrong(format!("{name} cannot be read ({error}); name another file")))?;
    Spec::parse(name, &text).map_err(|error| wrong(error.to_string()))
}
