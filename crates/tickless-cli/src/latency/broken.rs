//! `--break`: the kernel's trace around the first wakeup that is too late, and what explains it.

use crate::record::Output;
use serde::Serialize;
use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tickless_core::time::Ns;
use tickless_lab::latency::{Break, Sample};
use tickless_trace::Trace;
use tickless_trace::late::{CauseShare, EVENTS, Hop, SeenWakeup, explain, explain_wakeup};
use tickless_trace::record::{IdleStops, Options, RecordError, Recording, Tracefs};

/// Some hundred thousand events of what came before, on the busiest machine some 100 ms.
const BUFFER_KB: u64 = 4 << 10;

/// A recording that goes on until a wakeup is too late.
#[derive(Debug)]
pub(super) struct Breaking {
    above: Ns,
    output: Output,
    path: PathBuf,
    recording: Recording,
    before: IdleStops,
}

/// The wakeup that was too late. Serialises to `break` of the JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Broken {
    above_ns: u64,
    late_ns: u64,
    deadline_ns: u64,
    thread: u32,
    file: String,
    /// None where the trace does not have this sleep.
    hops: Option<Vec<Hop>>,
    /// Of all sleeps in the trace that were later than `above_ns`.
    causes: Vec<CauseShare>,
}

/// Why `--break` cannot be had.
#[derive(Debug)]
pub struct BreakError(RecordError);

impl fmt::Display for BreakError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BreakError(error) = self;
        write!(f, "--break records the kernel: {error}. ")?;
        f.write_str(
            "Without --break nothing is recorded: --limit max=TIME tells whether a wakeup ",
        )?;
        f.write_str("was later, and needs no rights")
    }
}

impl From<RecordError> for BreakError {
    fn from(error: RecordError) -> BreakError {
        BreakError(error)
    }
}

impl Breaking {
    /// Records from now on, and what is to be done at the first wakeup that is later than `above`.
    ///
    /// # Errors
    /// When this machine cannot be recorded, or the file not be written.
    pub(super) fn start(
        above: Duration,
        path: &Path,
        tell: &dyn Fn(&str),
    ) -> Result<(Breaking, Arc<Break>), BreakError> {
        let tracefs = Tracefs::find()?;
        let output = Output::open(path)?;
        let more = tracefs.having(&EVENTS);
        let options = Options { buffer_kb: Some(BUFFER_KB), more, ..Options::default() };
        let program = std::env::current_exe().ok();
        let recording = Recording::prepare(tracefs, &options, program.as_deref())?;
        recording.notes().iter().for_each(|note| tell(note));
        let freezer = recording.freezer()?;
        let before = IdleStops::now();
        recording.start()?;
        let above = Ns::from_duration(above);
        let at_break = Arc::new(Break::new(above.to_duration(), move || freezer.freeze()));
        Ok((Breaking { above, output, path: path.into(), recording, before }, at_break))
    }

    /// Writes and explains what was recorded up to this wakeup, if there was one.
    ///
    /// # Errors
    /// When the trace cannot be read, or the file not be written.
    pub(super) fn end(
        self,
        sample: Option<Sample>,
        tell: &dyn Fn(&str),
    ) -> Result<Option<Broken>, BreakError> {
        let Breaking { above, output, path, recording, before } = self;
        let Some(Sample { thread, deadline, now }) = sample else {
            output.abandon();
            return Ok(None);
        };
        let mut text = Vec::new();
        recording.write("tickless latency --break", &before, &mut text)?;
        drop(recording);
        output.replace(|out| {
            let error = |error| RecordError::Output { path: PathBuf::new(), error };
            out.write_all(&text).map_err(error)
        })?;
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
        let trace = match Trace::parse(&file, Cursor::new(text)) {
            Ok(trace) => trace,
            Err(error) => {
                tell(&error.to_string());
                return Ok(Some(broken));
            }
        };
        trace.messages().for_each(|message| tell(&message));
        let wakeup = SeenWakeup { thread, deadline: deadline.into(), seen: now.into() };
        let hops = explain_wakeup(&trace, wakeup).map(|sleep| sleep.hops);
        let causes = explain(&trace, above).causes;
        Ok(Some(Broken { hops, causes, ..broken }))
    }
}

impl Broken {
    /// The threshold.
    pub(super) fn above(&self) -> Ns {
        Ns(self.above_ns)
    }

    /// How late the wakeup was.
    pub(super) fn late(&self) -> Ns {
        Ns(self.late_ns)
    }

    /// The way of the wakeup, if the trace has it.
    pub(super) fn hops(&self) -> Option<&[Hop]> {
        self.hops.as_deref()
    }

    /// What the lateness of all late sleeps in the trace was spent on.
    pub(super) fn causes(&self) -> &[CauseShare] {
        &self.causes
    }

    /// Where the trace is.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The thread that woke.
    pub(super) fn thread(&self) -> u32 {
        self.thread
    }
}
