//! Random histories of the timer core on simulated machines, with faults.

use super::args::Outcome;
use super::find;
use crate::progress::Progress;
use crate::study::StudyError;
use tickless_machine::fuzz::{MACHINE, history};

/// Runs histories from this seed on, until one breaks a rule.
pub fn run(first: u64, count: u64, progress: &Progress) -> Result<Outcome, StudyError> {
    let spec = find(MACHINE)?;
    progress.begin("histories", count as usize);
    let mut text = String::new();
    let (mut armed, mut fired, mut faults) = (0, 0, 0);
    for seed in (0..count).map(|more| first.wrapping_add(more)) {
        let history = match history(&spec, seed) {
            Ok(history) => history,
            Err(violation) => return Ok(Outcome::Broken(violation.to_string())),
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
    Ok(Outcome::Text(text.into_bytes()))
}

/// More histories than this are only counted.
const SHOWN_MAX: u64 = 20;
