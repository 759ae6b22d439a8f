//! Runs random histories on simulated machines: sequences of operations on the timer core, with
//! injected faults, whose rules are checked.

use super::find;
use crate::progress::Progress;
use crate::studies::StudyError;
use tickless_machine::fuzz::{MACHINE, history};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Histories {
    /// No rule was broken. Contains a text that lists what was done.
    Sound(String),
    /// A history broke a rule. Contains a text that names the rule and how to repeat the history.
    Broken(String),
}

pub fn run(first: u64, count: u64, progress: &dyn Progress) -> Result<Histories, StudyError> {
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

/// The limit up to which each history gets a line in the text. More histories are only counted.
const SHOWN_MAX: u64 = 20;
