//! Damage of traces, and what the user can do about it.
//!
//! A [`Problem`] makes some lines unusable; all other lines are used. A [`TraceError`] makes the
//! whole trace unusable. Problems are counted by cause, so a million bad lines make one message.

use std::io;

use super::event::EventKind;
use super::fields::printable;
use thiserror::Error;
use tickless_core::time::CpuId;

/// A cause that makes lines unusable, the first line that it affects, and the number of such lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub cause: Cause,
    /// The first affected line, counted from 1; 0 if the problem concerns the whole file.
    pub line: u32,
    pub count: u64,
}

impl Problem {
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

#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Cause {
    #[error("no CPU, time and event name here; line skipped")]
    NotAnEvent,
    #[error("{} ends before its {field}; line skipped", event.name())]
    MissingField { event: EventKind, field: &'static str },
    #[error("{} has an unreadable {field}; line skipped", event.name())]
    UnreadableField { event: EventKind, field: &'static str },
    #[error("the last line has no line end, so its numbers may be short; line skipped")]
    LastLineCut,
    /// All unknown events together are one problem, which has the name of the first one.
    #[error("{name} is no timer event; line skipped")]
    UnknownEvent { name: Box<str> },
    /// Each such event is a problem of its own, up to `TIMER_EVENTS_NAMED` names.
    #[error(
        "{name} is an event of `timer` that this version does not know: a newer kernel may mean \
         something else by the events that are known; line skipped"
    )]
    UnknownTimerEvent { name: Box<str> },
    #[error(
        "the time is not in seconds; line skipped. \
         Record with `echo mono > trace_clock` (trace-cmd -C mono)"
    )]
    ClockNotInSeconds,
    #[error("no Linux has that many CPUs; line skipped")]
    CpuOutOfRange,
    #[error("bytes that are not UTF-8; the rest of the line is used")]
    NotUtf8,
    #[error("longer than any event; line skipped")]
    LineTooLong,
    #[error("earlier than the line before it; sorted by time")]
    OutOfOrder,
    #[error(
        "no header: the number of CPUs is taken from the events, and dropped events \
         cannot be seen. Keep the lines that begin with `#` (or `cpus=`)"
    )]
    NoHeader,
    #[error(
        "{events} events were dropped while recording: timers of those gaps are unknown. \
         Record with a larger buffer (buffer_size_kb, trace-cmd -b, perf record -m)"
    )]
    EventsDropped {
        /// How many dropped events were counted; there were more if the tool left out a number.
        events: u64,
    },
    #[error(
        "the header promises {promised} events, the file has {found}. Copy the file again, or \
         record again; `per_cpu/cpuN/trace` has one CPU only, `trace` has all"
    )]
    FewerThanPromised { promised: u64, found: u64 },
    #[error(
        "of {} expiries and interrupts, {broken} have a beginning or an end and not both: lines \
         are missing, and the trace does not say so. Record again, and do not filter the events",
        whole + broken
    )]
    HalvesMissing { whole: u64, broken: u64 },
    #[error(
        "the same event as one before it, of {of}: the trace has lines twice. Give each \
         recording once"
    )]
    Repeated { of: u64 },
    #[error(
        "earlier than the line before it of the same CPU, of {of} events: the lines were \
         shuffled. Events of one microsecond can then not be put in order"
    )]
    CpuOutOfOrder { of: u64 },
    #[error(
        "all events have the same time, so nothing can be said of when anything happened. Record \
         with a clock: echo mono > trace_clock"
    )]
    NoTime,
    #[error("hours away from nearly all other events; line skipped")]
    TimeOutOfPlace,
    #[error(
        "the time jumps by {seconds} s before this line. Two recordings in one file? Give one at \
         a time"
    )]
    TimeJump { seconds: u64 },
    #[error("a CPU that the header does not know, which has {known}; line skipped")]
    CpuNotInHeader { known: u16 },
    #[error(
        "the kernel recorded nothing of what CPU {}'s idle thread does, though it stopped its \
         tick: armings, cancels, device writes and idle states are missing there. Boot the \
         machine anew, or look with `tickless top`",
        cpu.0
    )]
    IdleNotRecorded { cpu: CpuId },
    #[error(
        "CPU {} was not recorded, so what happened there is unknown. \
         Record all CPUs (perf record -a without -C, trace-cmd without -M, all of tracing_cpumask)",
        cpu.0
    )]
    CpuNotRecorded { cpu: CpuId },
    #[error(
        "the header says HZ={header}, and jiffies advance {events} times a second: that is used. \
         Put right the first line"
    )]
    HzContradicted { header: u32, events: u32 },
    #[error(
        "flags=D|P|I is printed for every wheel timer, whatever its flags are. Whether timers are \
         deferrable is therefore unknown, and none is taken to be. Give the recording itself, a \
         trace.dat, instead of its text"
    )]
    FlagsNotTrusted,
    #[error(
        "hrtimer_start is printed without mode and was_armed, so restarts and cancels are partly \
         guessed. Print it with `trace-cmd report -t -N`, or give the trace.dat itself"
    )]
    ModesLeftOut,
    #[error(
        "no lost events are printed, which perf script does only with --show-lost-events, and not \
         for the last ones. There can be gaps that nothing shows: give the perf.data itself"
    )]
    LossesNotShown,
    #[error("parts of the recording are damaged: what they had is missing. Copy the file again")]
    PagesDamaged,
    #[error(
        "a perf.data has no names of functions, and this is not the kernel, or not the boot, that \
         it was recorded in: their addresses are shown, and where jiffies begin is known to a tick"
    )]
    NamesNotRecorded,
    #[error("the gzip data ends early; what came out is used")]
    GzipCut,
    #[error("the gzip data is damaged; what came out is used")]
    GzipDamaged,
    #[error("reading failed; what was read is used")]
    ReadFailed,
    #[error(
        "the tick rate is unknown, so wheel timers cannot be placed in time. \
         Put `# HZ=<CONFIG_HZ of that kernel>` in the first line"
    )]
    JiffiesNotPlaced,
}

impl Cause {
    /// Returns whether this problem means that the trace is damaged: the kernel cannot have
    /// recorded such events, or too many are missing. A replay of such a trace does not show what
    /// the kernel would have done.
    pub fn is_damage(&self) -> bool {
        // The percentage of pairs (entry and exit of a callback or interrupt) of which one half is
        // allowed to be missing: a single lost line hardly changes a replay.
        const BROKEN: u64 = 1;
        match self {
            Cause::HalvesMissing { whole, broken } => broken * 100 > BROKEN * (whole + broken),
            Cause::NoTime
            | Cause::PagesDamaged
            | Cause::TimeJump { .. }
            | Cause::HzContradicted { .. }
            | Cause::Repeated { .. }
            | Cause::CpuOutOfOrder { .. } => true,
            _ => false,
        }
    }
}

/// How many unknown events of `timer` are named. A kernel has few; a damaged file can have many.
const TIMER_EVENTS_NAMED: usize = 16;

#[derive(Clone, Default, Debug)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    pub fn find(&self, cause: &Cause) -> Option<&Problem> {
        self.0.iter().find(|problem| problem.cause == *cause)
    }

    pub fn messages<'a>(&'a self, path: &'a str) -> impl Iterator<Item = String> + 'a {
        self.0.iter().map(move |problem| problem.message(path))
    }

    /// Returns the problems that make a replay of the trace meaningless.
    pub fn damage(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter().filter(|problem| problem.cause.is_damage())
    }

    /// Returns how many events of this kind are unreadable, and the first message about them.
    pub(super) fn of_event(&self, kind: EventKind, path: &str) -> (u64, String) {
        let is_its = |problem: &&Problem| match problem.cause {
            Cause::MissingField { event, .. } | Cause::UnreadableField { event, .. } => {
                event == kind
            }
            _ => false,
        };
        let its = self.0.iter().filter(is_its);
        let first = its.clone().next().map(|problem| problem.message(path));
        (its.map(|problem| problem.count).sum(), first.unwrap_or_default())
    }

    /// Adds a problem that `count` lines have, of which `line` is the first.
    pub(super) fn note_many(&mut self, line: u32, count: u64, cause: Cause) {
        self.0.push(Problem { cause, line, count });
    }

    /// Corrects how many lines have a cause that is noted, perhaps none, and which is the first.
    pub(super) fn correct(&mut self, cause: &Cause, (count, line): (u64, u32)) {
        self.0.retain(|problem| count > 0 || problem.cause != *cause);
        let noted = self.0.iter_mut().filter(|problem| problem.cause == *cause);
        noted.for_each(|problem| (problem.count, problem.line) = (count, line));
    }

    pub(crate) fn note(&mut self, line: u32, cause: Cause) {
        match self.0.iter_mut().find(|problem| problem.cause == cause) {
            Some(known) => known.count += 1,
            None => self.0.push(Problem { cause, line, count: 1 }),
        }
    }

    /// Counts an unknown event. Allocates memory for the first one that is not about timers, and
    /// for some that are.
    pub(super) fn note_unknown_event(&mut self, line: u32, name: &[u8]) {
        let is_named =
            |problem: &&Problem| matches!(problem.cause, Cause::UnknownTimerEvent { .. });
        if [&b"hrtimer_"[..], b"timer_", b"itimer_", b"tick_"].iter().any(|of| name.starts_with(of))
        {
            let cause = Cause::UnknownTimerEvent { name: printable(name).into() };
            let named = self.0.iter().filter(is_named).count();
            if named < TIMER_EVENTS_NAMED || self.find(&cause).is_some() {
                return self.note(line, cause);
            }
        }
        let is_known = |problem: &&mut Problem| matches!(problem.cause, Cause::UnknownEvent { .. });
        match self.0.iter_mut().find(is_known) {
            Some(known) => known.count += 1,
            None => self.note(line, Cause::UnknownEvent { name: printable(name).into() }),
        }
    }
}

#[derive(Debug, Error)]
#[error("{path}: {why}")]
pub struct TraceError {
    pub path: String,
    pub why: Unusable,
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unusable {
    #[error("cannot be opened ({0}). Check the name and who may read it")]
    Open(io::Error),
    #[error("cannot be read ({0}). Name a file; in a directory of perf record, `data`")]
    Read(io::Error),
    #[error("broken gzip data, and no timer event before the break ({0}). Copy the file again")]
    BrokenGzip(io::Error),
    #[error("this is {what}. Turn it into text first: {with} FILE > trace.txt")]
    Convert { what: &'static str, with: &'static str },
    #[error("empty. Record a trace with the timer events, then try again")]
    Empty,
    #[error(
        "not text. Give ftrace's `trace` file, the output of `trace-cmd report` or of `perf \
         script`, plain or as .gz"
    )]
    NotText,
    #[error(
        "no timer event in {lines} lines. Record timer:* (trace-cmd record -e timer, perf record \
         -e 'timer:*'){}",
        first.as_ref().map(|first| format!("\n  {first}")).unwrap_or_default()
    )]
    NoTimerEvent { lines: u64, first: Option<String> },
    #[error("the {what} of the {form} cannot be read: the file is damaged. Copy it again")]
    Damaged { form: &'static str, what: &'static str },
    #[error("this perf.data {what}. {with}")]
    Perf { what: &'static str, with: &'static str },
    #[error(
        "a trace.dat of a machine with another byte order or words of 32 bits. Turn it into text \
         there: trace-cmd report -t -N -i FILE > trace.txt"
    )]
    ForeignDat,
    #[error(
        "a trace.dat of version {version}; 6 and 7 are read. Convert it: trace-cmd convert \
         --file-version 7"
    )]
    DatVersion { version: String },
    #[error(
        "recorded with the clock {clock}, which does not count nanoseconds. Record with \
         `trace-cmd record -C mono`, or after: echo mono > trace_clock"
    )]
    Clock { clock: String },
    #[error(
        "the times are whole numbers: of the clock `counter`, `uptime` or `x86-tsc`, which does \
         not count nanoseconds, or as trace-cmd prints them with --raw-ts, and always of `boot`. \
         Give the trace.dat itself, or record with `trace-cmd record -C mono`"
    )]
    WholeNumbers,
    #[error(
        "the timer events are printed in a form without CPU, time and name of the event. Print \
         them again without `-l`, or after: echo nolatency-format > trace_options"
    )]
    Form,
    #[error(
        "{unread} of {} {} cannot be read, so what the rest tells is not what happened. Print \
         the trace again with a current program, or give the recording itself\n  {first}",
        unread + read, event.name()
    )]
    KindUnreadable { event: EventKind, unread: u64, read: u64, first: String },
    #[error(
        "events of several instances or hosts, whose timers and CPUs are not the same: {names}. \
         Give one at a time: record each into a file of its own (trace-cmd extract -B NAME -o \
         FILE), or print one file (trace-cmd report -i FILE)"
    )]
    Several { names: String },
    #[error(
        "another recording begins in line {line}, with earlier times than the one before it. Give \
         one recording at a time"
    )]
    TwoRecordings { line: u32 },
    #[error(
        "{trace:.6} s pass on the trace's clock while timers see {timer:.6} s: its times are not \
         in seconds. Record with the clock `mono` (trace-cmd record -C mono)"
    )]
    WrongUnit { trace: f64, timer: f64 },
    #[error(
        "of {cancels} cancels, {impossible} are of timers that were not armed since their last \
         one: armings are missing. Record timer:* without a filter, and print all of it"
    )]
    Impossible { cancels: u64, impossible: u64 },
    #[error(
        "of {starts} armings of high-resolution timers, {unexpired} are of timers that were armed \
         before and did not expire: events are missing. Record those of all programs and CPUs \
         (trace-cmd record without -F, -P and -M; nothing in set_event_pid)"
    )]
    Unexpired { starts: u64, unexpired: u64 },
}
