//! The option `--break` of `tickless latency`: records the kernel until a wakeup is too late, keeps
//! the trace, and explains the wakeup.

use crate::command::{Failure, complain};
use crate::record::{self, Output};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_lab::latency::{Break, Sample};
use tickless_trace::late::{
    CauseShare, EVENTS, Hop, SeenWakeup, Selection, explain, explain_wakeup,
};
use tickless_trace::record::{Options, RecordError, Recording, Tracefs};

/// The size of the kernel's trace buffer for each CPU. It has room for the last hundred thousand
/// events or so, about 100 ms on the busiest machine.
const BUFFER_KB: u64 = 4 << 10;

#[derive(Debug)]
pub(super) struct Breaking {
    above: Ns,
    output: Output,
    path: PathBuf,
    recording: Recording,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Broken {
    pub(super) above_ns: u64,
    pub(super) late_ns: u64,
    deadline_ns: u64,
    pub(super) thread: u32,
    pub(super) file: String,
    /// The steps from the deadline to the running thread; `None` if the trace lacks this wakeup.
    pub(super) hops: Option<Vec<Hop>>,
    /// The causes of lateness, over all wakeups in the trace that were later than `above_ns`.
    pub(super) causes: Vec<CauseShare>,
}

fn failure(error: RecordError) -> Failure {
    Failure::new(format_args!(
        "--break records the kernel: {error}. Without --break nothing is recorded: --limit \
         max=TIME tells whether a wakeup was later, and needs no rights"
    ))
}

impl Breaking {
    /// Starts to record the kernel. The returned `Break` stops the recording and the measurement at
    /// the first wakeup that is late by more than `above`.
    pub(super) fn start(above: Duration, path: &Path) -> Result<(Breaking, Arc<Break>), Failure> {
        let tracefs = Tracefs::find().map_err(failure)?;
        let output = Output::open(path)?;
        let options = Options { buffer_kb: Some(BUFFER_KB), more: tracefs.having(&EVENTS) };
        let recording = record::prepare(tracefs, &options).map_err(failure)?;
        let freezer = recording.freezer().map_err(failure)?;
        recording.start().map_err(failure)?;
        let above = Ns::from_duration(above);
        let at_break = Arc::new(Break::new(above.to_duration(), freezer));
        Ok((Breaking { above, output, path: path.into(), recording }, at_break))
    }

    /// Ends a measurement. If a wakeup was too late (`sample`), writes the trace and explains it.
    pub(super) fn end(self, sample: Option<Sample>) -> Result<Option<Broken>, Failure> {
        let Breaking { above, output, path, recording } = self;
        let Some(Sample { thread, deadline, now }) = sample else {
            return Ok(None);
        };
        const RECORDED: &str = "tickless latency --break";
        output.replace(|out| recording.write(RECORDED, out).map(drop))?;
        let file = path.display().to_string();
        let late_ns = (now - deadline).as_nanos() as u64;
        let broken = Broken {
            above_ns: above.0,
            late_ns,
            deadline_ns: deadline.as_nanos(),
            thread,
            file: file.clone(),
            hops: None,
            causes: Vec::new(),
        };
        let trace = match recording.trace(&file, RECORDED) {
            Ok(trace) => trace,
            Err(error) => {
                complain(error);
                return Ok(Some(broken));
            }
        };
        trace.messages().for_each(complain);
        let wakeup = SeenWakeup { thread, deadline: deadline.to_ns(), seen: now.to_ns() };
        let hops = explain_wakeup(&trace, wakeup).map(|sleep| sleep.hops);
        let selection = Selection { folds: true, ..Selection::default() };
        let causes = explain(&trace, above, &selection).causes;
        Ok(Some(Broken { hops, causes, ..broken }))
    }
}
