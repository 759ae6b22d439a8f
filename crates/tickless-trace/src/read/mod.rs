//! Reads kernel timer traces: what `tickless replay` replays.
//!
//! Three tools print them as text, and this reads any of the three, plain or as gzip:
//!
//! | tool | told by | flags column | times |
//! |---|---|---|---|
//! | ftrace's `trace` file | `# tracer:`, `# entries-in-buffer` | yes | microseconds |
//! | `trace-cmd report` | `cpus=` | version 3 on | microseconds, or ns with `-t` |
//! | `perf script` | `timer:` before event names | no | microseconds, or ns with `--ns` |
//!
//! Guarantees:
//! - Whatever can be used is used: a damaged line costs that line. It is counted by cause in
//!   [`Trace::problems`], with the first line it struck. Only a file without any timer event
//!   is an error.
//! - Nothing is made up: a number that may have been cut is skipped, a word the kernel did
//!   not print is kept apart from one it did.
//! - No input makes it panic, and its memory is 24 to 56 bytes per event ([`Records`]) plus the
//!   longest line, or plus the file if that is a binary one.
//! - Records are sorted by time, and events of equal time stay in the order of their lines.
//!   So the records of one CPU are in the order in which that CPU printed them.
//!
//! Ground rules: times are on the trace's own clock. Deadlines of `hrtimer_*` are on the
//! timer's clock and become trace time through [`Trace::monotonic`]; those of `timer_*` are
//! jiffies and become trace time through [`Trace::jiffies`].
//!
//! Where to look: [`event`](Event) for what events hold, `prefix` for how the tools' lines
//! differ, `payload` for how an event's text is read, `jiffies` and `monotonic` for how the
//! clocks are found, `records` and `compact` for how events are kept, `problem` for everything that
//! can be wrong.

mod attributes;
pub mod binary;
mod compact;
mod event;
mod fields;
mod header;
mod jiffies;
mod monotonic;
mod names;
mod open;
mod payload;
mod prefix;
mod problem;
mod reader;
mod records;
mod soundness;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use open::Opened;
use tickless_core::time::Ns;

pub use attributes::{Bucket, ClockId, Context, HrtimerMode, TimerFlags};
pub use event::{CPU_IDLE_EXIT, Event, EventKind, Jiffy, TSC_DEADLINE_REGISTER, TimerAddr};
pub use header::{Entries, Format, Header};
pub use jiffies::{Hz, HzSource, JiffyClock, JiffyWidth};
pub use monotonic::MonotonicOffset;
pub use names::{NameId, Names};
pub use problem::{Cause, MissingPlace, Problem, Problems, TraceError};
pub use records::{Record, RecordIter, Records};

/// A trace, read.
#[derive(Debug)]
pub struct Trace {
    /// The file, as named by the caller.
    pub path: String,
    /// What the trace says about itself.
    pub header: Header,
    /// How many CPUs: every CPU number in the trace is below it.
    pub cpus: u16,
    /// The events, sorted by time.
    pub records: Records,
    /// The names behind [`NameId`]s.
    pub names: Names,
    /// What threads were called last, by their numbers.
    pub tasks: HashMap<u32, Box<str>>,
    /// The tick rate, if it could be found.
    pub hz: Option<Hz>,
    /// Where jiffies lie in time, if the wheel had events and the tick rate is known.
    pub jiffies: Option<JiffyClock>,
    /// Where CLOCK_MONOTONIC lies in time, if an hrtimer expired.
    pub monotonic: Option<MonotonicOffset>,
    /// What was wrong, by cause.
    pub problems: Problems,
    /// Lines in the file.
    pub lines: u64,
    /// Lines that may have been events and were not used.
    pub skipped_lines: u64,
    /// Events lost while recording, as far as the trace owns up to them.
    pub dropped_events: u64,
}

impl Trace {
    /// Reads the file at `path`, gzip or plain. Blocks on the file; O(size), plus O(n log n)
    /// if events are out of order. 130,000 lines take about
    /// 45 ms, and as much again to unpack.
    ///
    /// # Errors
    /// When there is no timer event to be had from the file; see [`TraceError`].
    pub fn read(path: &Path) -> Result<Trace, TraceError> {
        let name = path.to_string_lossy();
        let file = File::open(path);
        let file = file.map_err(|error| TraceError::Open { path: name.to_string(), error })?;
        Trace::parse(&name, file)
    }

    /// Reads a trace from anywhere; `path` is what messages call it.
    ///
    /// # Errors
    /// When there is no timer event to be had; see [`TraceError`].
    pub fn parse(path: &str, input: impl Read) -> Result<Trace, TraceError> {
        match open::open(path, input)? {
            Opened::Text(lines) => reader::read(path, lines),
            Opened::TraceDat(file) => binary::read_trace_dat(path, &file),
            Opened::PerfData(file) => binary::read_perf_data(path, &file),
        }
    }

    /// How many events of `kind` there are. O(n).
    pub fn count(&self, kind: EventKind) -> usize {
        self.records.kinds().filter(|other| *other == kind).count()
    }

    /// The writes to timer devices. O(n).
    pub fn device_writes(&self) -> impl Iterator<Item = Record> {
        let writes = self.records.of_kinds(&[EventKind::WriteMsr]);
        writes.filter(|record| record.event.is_device_write())
    }

    /// From the first event to the last.
    pub fn span(&self) -> Ns {
        match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => last.time.since(first.time),
            _ => Ns::ZERO,
        }
    }

    /// One message for each cause of problems, with file, line and count.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        self.problems.messages(&self.path)
    }
}
