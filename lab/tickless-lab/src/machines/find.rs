//! Finds a simulated machine by its name, or by the name of its file.

use crate::error::LabError;
use crate::input;
use std::path::Path;
use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::Spec;

/// Returns the machine of this name. If no machine has the name and it contains a dot or a slash,
/// or there is such a file, reads the machine from the file of that name.
pub fn find(name: &str) -> Result<Spec, LabError> {
    let wrong = |what| LabError::Request { what };
    if let Some(spec) = machines::named(name) {
        return spec.map_err(|error| wrong(error.to_string()));
    }
    if !name.contains(['.', '/']) && !Path::new(name).is_file() {
        let names = FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(wrong(format!("there is no machine {name}; there are {names}, and files")));
    }
    let text = input::read_text(Path::new(name))
        .map_err(|error| wrong(format!("{name}: cannot be read ({error}). Name another file")))?;
    Spec::parse(name, &text).map_err(|error| wrong(error.to_string()))
}
