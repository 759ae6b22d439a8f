//! Reads kernel timer traces.
//!
//! ftrace, trace-cmd and perf print them as text, which is read plain or as gzip. The recordings of
//! trace-cmd and perf are read, too.
//!
//! Guarantees:
//! - A damaged line costs that line and no other. The damage is counted by cause in
//!   [`Trace::problems`], with its first line. Only a file without any timer event is an error.
//! - A number that was perhaps cut off is not used. A field that the kernel did not print has a
//!   value that means "not printed".
//! - No input causes a panic. A trace takes 56 bytes per event. More than 32 MB of them are in a
//!   temporary file, in `TMPDIR` or `/var/tmp`, and so is a packed `trace.dat` while it is read.
//!   Without room there, they are in memory. A text takes some 2 MB for each CPU of this machine.
//! - Records are sorted by time, and events of equal time keep the order of their lines.
//!   So the records of one CPU are in the order in which that CPU recorded them.
//!
//! Times are on the trace's own clock. Deadlines of `hrtimer_*` are on the timer's clock, which
//! [`Trace::monotonic_ahead_ns`] relates to the trace's; those of `timer_*` are jiffies: see
//! [`Trace::jiffies`].

mod attributes;
mod binary;
mod build;
mod dat;
mod event;
mod fields;
mod gap;
mod header;
mod jiffies;
mod monotonic;
mod names;
mod open;
mod perf;
mod prefix;
mod problem;
mod processes;
mod reader;
mod soundness;
mod symbols;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::list::List;
use dat::Source;
use open::Input;
use rustc_hash::FxHashMap;
use tickless_core::time::{CpuId, Ns};

pub use attributes::{ClockId, Context, HrtimerMode};
pub(crate) use binary::counter;
pub(crate) use dat::{FLYRECORD, MAGIC, OPTIONS, OptionId};
pub use event::{DEVICE_OFF, Event, EventKind, Family, Jiffy, TSC_DEADLINE_REGISTER, TimerAddr};
pub use gap::Gap;
pub use header::Header;
pub use jiffies::JiffyClock;
pub(crate) use jiffies::tick;
pub use names::{NameId, Names, SLEEPER_FUNCTION, TICK_FUNCTIONS};
pub(crate) use prefix::{Prefix, split};
pub use problem::{Cause, Problem, Problems, TraceError, Unusable};
pub(crate) use processes::Limited;
pub use processes::Processes;
pub(crate) use processes::{LIMITS_KNOWN, Steal, running};
pub(crate) use reader::IDLE_NOT_RECORDED;
pub use symbols::Symbols;

/// One event, with the time, the CPU and the thread at which it occurred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub time: Ns,
    pub event: Event,
    pub line: u32,
    pub cpu: CpuId,
    pub context: Context,
    /// The thread that the CPU ran or interrupted; 0 for the idle task.
    pub pid: u32,
}

// Keep records small: each byte more makes a trace of ten million events ten megabytes larger, in
// memory or on the disk.
const _: () = assert!(size_of::<Record>() == 56);

#[derive(Debug)]
pub struct Trace {
    pub path: String,
    pub header: Header,
    /// The number of CPUs: every CPU number in the trace is below it.
    pub cpus: u16,
    pub records: List<Record>,
    counts: soundness::Counts,
    pub names: Names,
    /// The name of each thread, by the thread's number; the last one, if it has changed.
    pub tasks: FxHashMap<u32, Box<str>>,
    pub processes: Processes,
    pub hz: Option<u32>,
    /// Converts jiffies to times; `None` without a wheel timer or a known tick rate.
    pub jiffies: Option<JiffyClock>,
    /// How far the trace's clock is ahead of CLOCK_MONOTONIC; `None` if no hrtimer expired.
    pub monotonic_ahead_ns: Option<i64>,
    pub problems: Problems,
    /// Lines that were perhaps events, but could not be used.
    pub skipped_lines: u64,
    /// Events lost while recording, as far as the trace reports them.
    pub dropped_events: u64,
    /// The times of which the trace shows nothing of a CPU, in the order of the records after them.
    pub gaps: Vec<Gap>,
}

impl Trace {
    /// Reads the file at `path`, gzip or plain. Blocks on the file; O(size), plus O(n log n) if
    /// events are out of order. Text is read on all CPUs, and unpacked on one more thread.
    pub fn read(path: &Path) -> Result<Trace, TraceError> {
        let name = path.to_string_lossy();
        let named = |why| TraceError { path: name.to_string(), why };
        let file = File::open(path).map_err(|error| named(Unusable::Open(error)))?;
        match Source::of(&file, dat::MAGIC) {
            Some(file) => binary::read(&name, &file).map_err(named),
            None => Trace::parse(&name, file),
        }
    }

    /// Reads a trace from `input`. Error messages name the trace `path`.
    pub fn parse(path: &str, input: impl Read) -> Result<Trace, TraceError> {
        let read = open::open(input).and_then(|input| match input {
            Input::Text(lines) => reader::read(path, lines),
            Input::Dat(file) => binary::read(path, &Source::List(&file)),
            Input::Perf(file) => perf::read(path, &file),
        });
        read.map_err(|why| TraceError { path: path.to_owned(), why })
    }

    /// Returns the length of the kernel's tick, if its rate is known.
    pub fn tick(&self) -> Option<Ns> {
        self.hz.map(tick)
    }

    /// Returns the length of the kernel's tick, and if its rate is not known, of the default rate,
    /// 250 Hz.
    pub(crate) fn tick_or_default(&self) -> Ns {
        self.tick().unwrap_or(Ns(4_000_000))
    }

    /// Returns the name of a thread; `?` if the trace does not have it.
    pub(crate) fn task_name(&self, pid: u32) -> &str {
        self.tasks.get(&pid).map_or("?", |name| name)
    }

    pub fn count(&self, kind: EventKind) -> usize {
        self.counts.of(kind)
    }

    /// Returns how often event devices were written. Since Linux 7.1 each write has an event of its
    /// own, `hrtimer_rearm`; before that, those of x86 are writes of a register.
    pub fn device_writes(&self) -> usize {
        self.counts.device_writes[usize::from(self.count(EventKind::HrtimerRearm) > 0)]
    }

    pub fn span(&self) -> Ns {
        match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => last.time.since(first.time),
            _ => Ns::ZERO,
        }
    }

    pub fn messages(&self) -> impl Iterator<Item = String> {
        self.problems.messages(&self.path)
    }
}
