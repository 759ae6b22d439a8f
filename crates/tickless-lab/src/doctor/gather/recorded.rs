//! Records the kernel's timer events, and reads them into memory.

use super::GatherOptions;
use crate::doctor::facts::{RecordedTimers, Seen};
use std::collections::BTreeMap;
use std::fs;
use tickless_trace::read::{Event, Trace};
use tickless_trace::record::{EXTRA_FOR_DOCTOR, Options, RecordError, Recording, Tracefs};

pub(super) fn begin(look: &GatherOptions) -> Seen<Recording> {
    let begin = || -> Result<Recording, RecordError> {
        let tracefs = Tracefs::find()?;
        let recording = prepare(tracefs, look)?;
        recording.start()?;
        Ok(recording)
    };
    begin().map_err(|error| error.to_string())
}

/// Sets up the recording. Some checks use additional kinds of events, which are recorded if the
/// kernel has them.
fn prepare(tracefs: Tracefs, look: &GatherOptions) -> Result<Recording, RecordError> {
    let options = Options { more: tracefs.having(&EXTRA_FOR_DOCTOR), ..Options::default() };
    Recording::prepare(tracefs, &options, look.program.as_deref())
}

pub(super) fn end(recording: Recording) -> Seen<RecordedTimers> {
    let text = recording.stop().and_then(|()| recording.text("tickless doctor"));
    let text = text.map_err(|error| error.to_string())?;
    let trace = Trace::parse("what was recorded", text).map_err(|error| error.to_string())?;
    let threads = names(&trace);
    Ok(RecordedTimers::new(trace, threads))
}

/// Returns the names of the threads that were woken during the recording. Threads that have ended
/// since then are left out.
fn names(trace: &Trace) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for record in trace.records.iter() {
        let Event::SchedWakeup { pid, .. } = record.event else { continue };
        names.entry(pid).or_insert_with(|| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim().chars().filter(|c| !c.is_control()).collect::<String>()
        });
    }
    names.retain(|_, name| !name.is_empty());
    names
}
