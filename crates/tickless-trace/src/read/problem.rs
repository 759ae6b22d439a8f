//! What can be wrong with a trace, and what to do about it.
//!
//! Two kinds: a [`Problem`] costs some lines and the rest is used; a [`TraceError`] leaves
//! nothing to use. Problems are counted by cause, so a million bad lines make one message.

use std::{fmt, io};

use super::event::EventKind;
use tickless_core::time::CpuId;

/// One cause, the first line it struck, and how often it struck.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What is wrong.
    pub cause: Cause,
    /// The first line with it, from 1; 0 if it concerns the file as a whole.
    pub line: u32,
    /// How many lines have it.
    pub count: u64,
}

impl Problem {
    /// File, line, cause, and how many more lines have it.
    pub fn message(&self, path: &str) -> String {
        let Problem { cause, line, count } = self;
        let place = if *line == 0 { String::new() } else { format!(":{line}") };
        let more = match count - 1 {
            0 => String::new(),
            1 => " (and 1 more line)".to_owned(),
            more => format!(" (and {more} more lines)"),
        };
        format!("{path}{place}: {cause}{more}")
    }
}

/// Why part of a trace could not be used, or not be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No CPU, time and event name in the line.
    NotAnEvent,
    /// The event ends before a field that every kernel prints.
    MissingField {
        /// The event.
        event: EventKind,
        /// The field.
        field: &'static str,
    },
    /// A field is there but cannot be read.
    UnreadableField {
        /// The event.
        event: EventKind,
        /// The field.
        field: &'static str,
    },
    /// The last line has no line end, so its last number may be short.
    LastLineCut,
    /// An event that tells nothing of timers.
    UnknownEvent {
        /// Its name.
        name: Box<str>,
    },
    /// Further such events, after the first few names.
    MoreUnknownEvents,
    /// Times are not seconds.
    ClockNotInSeconds,
    /// A CPU number no Linux kernel has.
    CpuOutOfRange,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A line longer than any event.
    LineTooLong,
    /// An event earlier than one before it.
    OutOfOrder,
    /// No header of ftrace or trace-cmd, and no perf event names either.
    NoHeader,
    /// Addresses of 32 bits.
    NarrowAddresses,
    /// The kernel or the tool dropped events.
    EventsDropped {
        /// How many it owned up to; more if some marks had no count.
        events: u64,
    },
    /// The header promises more events than the file has.
    FewerThanPromised {
        /// Entries according to the header.
        promised: u64,
        /// Event lines found.
        found: u64,
        /// Where they are missing, as far as the events themselves tell.
        place: MissingPlace,
    },
    /// Events that belong together and of which one is missing, beyond the trace's two ends.
    HalvesMissing {
        /// How many such pairs are whole.
        whole: u64,
        /// How many are not.
        broken: u64,
    },
    /// Events that are in the trace twice.
    Repeated {
        /// How many events there are, the repeated ones included.
        of: u64,
    },
    /// Lines of one CPU whose times run backwards.
    CpuOutOfOrder {
        /// How many events there are.
        of: u64,
    },
    /// The recording has addresses of functions and not their names.
    NoFunctionNames,
    /// All events have the same time.
    NoTime,
    /// A time that is far from those of nearly all other events.
    TimeOutOfPlace,
    /// Nothing for so long that the times cannot be right.
    TimeJump {
        /// For how long.
        seconds: u64,
    },
    /// A CPU that the header does not know.
    CpuNotInHeader {
        /// How many CPUs it knows.
        known: u16,
    },
    /// The recorder found that the kernel records nothing of what this CPU's idle thread does.
    IdleNotRecorded {
        /// The CPU.
        cpu: CpuId,
    },
    /// A tick rate in the header that the events contradict.
    HzContradicted {
        /// What the header says.
        header: u32,
        /// What the events say, which is used.
        events: u32,
    },
    /// The gzip stream ends in the middle.
    GzipCut,
    /// The gzip stream is damaged, or has something else behind it.
    GzipDamaged,
    /// The file could not be read to its end.
    ReadFailed,
    /// Wheel timers whose jiffies cannot be placed in time.
    JiffiesNotPlaced,
}

/// Where lines are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingPlace {
    /// At the end: the file breaks off, or too many are missing to leave no trace elsewhere.
    End,
    /// In the middle, from this line on.
    Middle {
        /// The first line that tells.
        line: u32,
    },
    /// That cannot be told.
    Unknown,
}

impl Cause {
    /// Whether the trace cannot have happened like that, or too much of it is missing: what a
    /// replay of it says is then not what the kernel would have done.
    pub fn is_damage(&self) -> bool {
        // Of a hundred pairs: a single lost line costs a replay little.
        const BROKEN: u64 = 1;
        match self {
            Cause::HalvesMissing { whole, broken } => broken * 100 > BROKEN * (whole + broken),
            Cause::NoTime
            | Cause::TimeJump { .. }
            | Cause::HzContradicted { .. }
            | Cause::Repeated { .. }
            | Cause::CpuOutOfOrder { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NotAnEvent => f.write_str("no CPU, time and event name here; line skipped"),
            Cause::MissingField { event, field } => {
                write!(f, "{} ends before its {field}; line skipped", event.name())
            }
            Cause::UnreadableField { event, field } => {
                write!(f, "{} has an unreadable {field}; line skipped", event.name())
            }
            Cause::LastLineCut => f.write_str(
                "the last line has no line end, so its numbers may be short; line skipped",
            ),
            Cause::UnknownEvent { name } => write!(f, "{name} is no timer event; line skipped"),
            Cause::MoreUnknownEvents => f.write_str("other events that are no timer events"),
            Cause::ClockNotInSeconds => f.write_str(
                "the time is not in seconds; line skipped. \
                 Record with `echo mono > trace_clock` (trace-cmd -C mono)",
            ),
            Cause::CpuOutOfRange => f.write_str("no Linux has that many CPUs; line skipped"),
            Cause::NotUtf8 => f.write_str("bytes that are not UTF-8; the rest of the line is used"),
            Cause::LineTooLong => f.write_str("longer than any event; line skipped"),
            Cause::OutOfOrder => f.write_str("earlier than the line before it; sorted by time"),
            Cause::NoHeader => f.write_str(
                "no header: the number of CPUs is taken from the events, and dropped events \
                 cannot be seen. Keep the lines that begin with `#` (or `cpus=`)",
            ),
            Cause::NarrowAddresses => {
                f.write_str("32-bit addresses; used as names, as addresses always are")
            }
            Cause::EventsDropped { events } => write!(
                f,
                "{events} events were dropped while recording: timers of those gaps are unknown. \
                 Record with a larger buffer (buffer_size_kb, trace-cmd -b, perf record -m)"
            ),
            Cause::FewerThanPromised { .. }
            | Cause::HalvesMissing { .. }
            | Cause::Repeated { .. }
            | Cause::CpuOutOfOrder { .. }
            | Cause::NoTime
            | Cause::TimeOutOfPlace
            | Cause::TimeJump { .. }
            | Cause::CpuNotInHeader { .. }
            | Cause::HzContradicted { .. } => self.unsound(f),
            Cause::GzipCut => f.write_str("the gzip data ends early; what came out is used"),
            Cause::GzipDamaged => f.write_str("the gzip data is damaged; what came out is used"),
            Cause::NoFunctionNames => f.write_str(
                "perf.data has addresses of functions and not their names, and this is not the \
                 kernel that recorded it, as it was booted then. Give the text that `perf script \
                 --ns --header` prints where it was recorded, if names matter",
            ),
            Cause::IdleNotRecorded { cpu: CpuId(cpu) } => write!(
                f,
                "the kernel recorded nothing of what CPU {cpu}'s idle thread does, though it \
                 stopped its tick: armings, cancels, device writes and idle states are missing \
                 there. Boot the machine anew, or look with `tickless top --source ebpf`"
            ),
            Cause::ReadFailed => f.write_str("reading failed; what was read is used"),
            Cause::JiffiesNotPlaced => f.write_str(
                "the tick rate is unknown, so wheel timers cannot be placed in time. \
                 Put `# HZ=<CONFIG_HZ of that kernel>` in the first line",
            ),
        }
    }
}

impl Cause {
    /// What cannot have happened, and what to do.
    fn unsound(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::FewerThanPromised { promised, found, place } => {
                write!(f, "the header promises {promised} events, the file has {found}: ")?;
                match place {
                    MissingPlace::End => f.write_str("its end is missing"),
                    MissingPlace::Middle { line } => {
                        write!(f, "lines are missing in the middle, the first before line {line}")
                    }
                    MissingPlace::Unknown => f.write_str("where they are missing cannot be told"),
                }
            }
            Cause::HalvesMissing { whole, broken } => write!(
                f,
                "of {} expiries and interrupts, {broken} have a beginning or an end and not \
                 both: lines are missing, and the trace does not say so. Record again, and do \
                 not filter the events",
                whole + broken
            ),
            Cause::Repeated { of } => write!(
                f,
                "the same event as one before it, of {of}: the trace has lines twice. Give each \
                 recording once"
            ),
            Cause::CpuOutOfOrder { of } => write!(
                f,
                "earlier than the line before it of the same CPU, of {of} events: the lines were \
                 shuffled. Events of one microsecond can then not be put in order"
            ),
            Cause::NoTime => f.write_str(
                "all events have the same time, so nothing can be said of when anything \
                 happened. Record with a clock: echo mono > trace_clock",
            ),
            Cause::TimeOutOfPlace => {
                f.write_str("hours away from nearly all other events; line skipped")
            }
            Cause::TimeJump { seconds } => write!(
                f,
                "the time jumps by {seconds} s before this line. Two recordings in one file? Give \
                 one at a time"
            ),
            Cause::CpuNotInHeader { known } => {
                write!(f, "a CPU that the header does not know, which has {known}; line skipped")
            }
            Cause::HzContradicted { header, events } => write!(
                f,
                "the header says HZ={header}, and jiffies advance {events} times a second: that \
                 is used. Put right the first line"
            ),
            _ => Ok(()),
        }
    }
}

/// All problems of one trace, by cause, in the order they were met.
#[derive(Clone, Default, Debug)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// How many different names of unknown events are told apart.
    const UNKNOWN_NAMES_MAX: usize = 16;

    /// Each cause once.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether the trace was faultless.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problem with this cause, if it was met.
    pub fn find(&self, cause: &Cause) -> Option<&Problem> {
        self.0.iter().find(|problem| problem.cause == *cause)
    }

    /// One message for each cause: file, line, cause, and how many more lines have it.
    pub fn messages<'a>(&'a self, path: &'a str) -> impl Iterator<Item = String> + 'a {
        self.0.iter().map(move |problem| problem.message(path))
    }

    /// What makes a replay of the trace meaningless, by cause.
    pub fn damage(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter().filter(|problem| problem.cause.is_damage())
    }

    /// Notes a cause that so many lines have, `line` being the first of them.
    pub(super) fn note_many(&mut self, line: u32, count: u64, cause: Cause) {
        self.0.push(Problem { cause, line, count });
    }

    pub(super) fn note(&mut self, line: u32, cause: Cause) {
        match self.0.iter_mut().find(|problem| problem.cause == cause) {
            Some(known) => known.count += 1,
            None => self.0.push(Problem { cause, line, count: 1 }),
        }
    }

    /// Notes an unknown event without allocating for a name that was met before.
    pub(super) fn note_unknown_event(&mut self, line: u32, name: &[u8]) {
        let mut names = 0;
        for problem in &mut self.0 {
            if let Cause::UnknownEvent { name: known } = &problem.cause {
                if known.as_bytes() == name {
                    problem.count += 1;
                    return;
                }
                names += 1;
            }
        }
        if names == Self::UNKNOWN_NAMES_MAX {
            return self.note(line, Cause::MoreUnknownEvents);
        }
        self.note(line, Cause::UnknownEvent { name: super::fields::printable(name).into() });
    }
}

/// Why nothing of a trace can be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened.
    Open {
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The file cannot be read.
    Read {
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The gzip stream is broken before any timer event came out of it.
    BrokenGzip {
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A binary recording, or a compressed file, that another program turns into text.
    Convert {
        /// Which file.
        path: String,
        /// What it is.
        what: &'static str,
        /// The program to turn it into text with.
        with: &'static str,
    },
    /// A binary recording that ends too early, or in which a length cannot be right.
    DamagedBinary {
        /// Which file.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// The file has nothing in it.
    Empty {
        /// Which file.
        path: String,
    },
    /// The file is not text.
    NotText {
        /// Which file.
        path: String,
    },
    /// Text without a single `timer_*` or `hrtimer_*` event.
    NoTimerEvent {
        /// Which file.
        path: String,
        /// How many lines were read.
        lines: u64,
        /// The first message about them, if any.
        first: Option<String>,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Open { path, error } => {
                write!(f, "{path}: cannot be opened ({error}). Check the name and who may read it")
            }
            TraceError::Read { path, error } => {
                write!(f, "{path}: cannot be read ({error}). Name a file, not a directory")
            }
            TraceError::BrokenGzip { path, error } => write!(
                f,
                "{path}: broken gzip data, and no timer event before the break ({error}). \
                 Copy the file again"
            ),
            TraceError::Convert { path, what, with } => {
                write!(
                    f,
                    "{path}: this is {what}. Turn it into text first: {with} {path} > trace.txt"
                )
            }
            TraceError::DamagedBinary { path, what } => write!(
                f,
                "{path}: a {what} that ends too early, or is damaged. Copy the file again, or \
                 record again"
            ),
            TraceError::Empty { path } => {
                write!(f, "{path}: empty. Record a trace with the timer events, then try again")
            }
            TraceError::NotText { path } => write!(
                f,
                "{path}: not text. Give ftrace's `trace` file, the output of `trace-cmd report` \
                 or of `perf script`, plain or as .gz"
            ),
            TraceError::NoTimerEvent { path, lines, first } => {
                write!(f, "{path}: no timer event in {lines} lines. ")?;
                f.write_str(
                    "Record timer:* (trace-cmd record -e timer, perf record -e 'timer:*')",
                )?;
                first.iter().try_for_each(|first| write!(f, "\n  {first}"))
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Open { error, .. }
            | TraceError::Read { error, .. }
            | TraceError::BrokenGzip { error, .. } => Some(error),
            _ => None,
        }
    }
}
