//! The simulated machines: finds them by name, describes this host as one of them, and checks how
//! well the simulation predicts this host.

pub mod measured;
mod micro;
mod real;
pub mod validate;

use crate::progress::Progress;
use crate::{LabError, input};
use std::path::Path;
use tickless_machine::fuzz::{MACHINE, history};
use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::Spec;

/// Returns the machine of this name. If no machine has the name and it contains a dot or a slash,
/// reads the machine from the file of that name.
pub fn find(name: &str) -> Result<Spec, LabError> {
    let wrong = |what| LabError::Request { what };
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

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Histories {
    /// No history, which is the random test of one seed, broke a rule of the timers. Contains a
    /// text that counts what the histories did.
    Sound(String),
    /// A history, which is the random test of one seed, broke a rule of the timers. Contains a text
    /// that names the rule and how to repeat the history.
    Broken(String),
}

pub fn run_histories(
    first: u64,
    count: u64,
    progress: &dyn Progress,
) -> Result<Histories, LabError> {
    let spec = find(MACHINE)?;
    progress.begin("histories", count as usize);
    let mut text = String::new();
    let (mut armed, mut fired, mut faults) = (0, 0, 0);
    for seed in (0..count).map(|more| first.wrapping_add(more)) {
        let history = match history(&spec, seed) {
            Ok(history) => history,
            Err(violation) => return Ok(Histories::Broken(violation.to_string())),
        };
        armed += history.armed;
        fired += history.fired;
        faults += history.faults.total();
        if count <= SHOWN_MAX {
            text += &format!("{seed}: {history}\n");
        }
        progress.step();
    }
    text += &format!(
        "{count} histories from seed {first} on: {armed} armings, {fired} callbacks, {faults} \
         faults, no rule broken\n"
    );
    Ok(Histories::Sound(text))
}

const SHOWN_MAX: u64 = 20;
