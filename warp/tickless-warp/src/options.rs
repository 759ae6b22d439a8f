//! The options with which a caller runs a program, and what the caller gets in return.

use crate::report::Report;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// How fast virtual time passes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Pace {
    /// Time is real while a thread computes, and jumps ahead when every thread waits.
    #[default]
    Jump,
    /// Only by jumps: computing takes no time.
    Frozen,
    /// Time runs this many times as fast as real time, without jumps. Finite and above zero.
    Times(f64),
}

/// What a wait for input from outside of the traced processes does to the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outside {
    /// Time is real while a thread waits for a terminal, an inherited pipe or socket, or a server
    /// of this machine, and while it has a connection to another machine or a pseudo-terminal.
    #[default]
    Wait,
    /// The clock jumps all the same.
    Ignore,
}

/// Options of [`run`](crate::run).
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Ends the program after this much virtual time.
    pub until: Option<Duration>,
    /// The time of day at which the program starts, in nanoseconds since 1970; now if `None`.
    pub start_ns: Option<i64>,
    /// How fast time passes.
    pub pace: Pace,
    /// What a wait for input from outside of the traced processes does to the clock.
    pub outside: Outside,
    /// Traps `rdtsc` too (the instruction that reads the CPU's counter), as [`Pace::Frozen`] always
    /// does. Each clock read is then a trapped system call, unless the pace is frozen.
    pub traps_counter: bool,
    /// Orders deadlines of equal time at random, by this seed; in the order of arming if `None`.
    pub seed: Option<u64>,
    /// Records which threads waited for what.
    pub reports: bool,
}

impl Options {
    /// Returns whether the instruction `rdtsc` reads virtual time.
    pub(crate) fn is_counter_virtual(&self) -> bool {
        self.traps_counter || self.pace == Pace::Frozen
    }
}

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
    /// Because the time of [`Options::until`] had passed.
    Until,
}

/// What happened in a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the program ended.
    pub ended: Ended,
    /// The virtual time that has passed.
    pub passed: Duration,
    /// The real time that the run took.
    pub used: Duration,
    /// How often the clock jumped.
    pub jumps: u64,
    /// Which threads waited for what, if [`Options::reports`] asked for it.
    pub report: Option<Report>,
}

/// A process of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The name of its program.
    pub name: String,
}

/// What the user should know while the program runs.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Programs cannot read clocks without system calls, because the kernel does not take its time
    /// from the time-stamp counter.
    SlowClocks,
    /// A program of 32 bits was about to run, whose system calls cannot be trapped. It was ended.
    ThirtyTwoBits(Process),
    /// A set-uid program runs without the privileges that its file would give it.
    SetUid(Process),
    /// A thread computes for long, so the clock does not jump.
    Computes(Process, Pace),
    /// A thread of this process sleeps for long in the system call with this number, which waits
    /// for a device or another program, not for the tree. So the clock does not jump.
    Awaits(Process, i64),
    /// This process has been refused what the text names, because the kernel would work for it
    /// unseen, and the clock could jump over that work.
    Refused(Process, &'static str),
    /// This process traces others, as a debugger does, and gets `EPERM`.
    Tracer(Process),
    /// This process has waited again and again for 10 s, and its program reads the CPU's counter,
    /// which does not jump with the clock.
    Counter(Process),
    /// Every thread waits, for example in this process, and none has a deadline.
    NoDeadline(Process),
    /// A thread of this process waits for input from outside, which the text names: time is real.
    Outside(Process, &'static str),
    /// The program has ended. This many other processes of it, such as this one, were killed.
    LeftOver(usize, Process),
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::SlowClocks => f.write_str(
                "each clock read is a system call, which takes about 10 us: this kernel does not \
                 use the time-stamp counter",
            ),
            Note::ThirtyTwoBits(Process { name, .. }) => write!(
                f,
                "{name} is a program of 32 bits, whose time cannot be virtual; it has been ended. \
                 Build it for x86-64"
            ),
            Note::SetUid(Process { name, .. }) => write!(
                f,
                "{name} is set-uid, and runs without its privileges because it is traced; run \
                 tickless as root to keep them"
            ),
            Note::Computes(process, Pace::Frozen) => write!(
                f,
                "{process} has been computing for 10 s without a wait, so time stands still; if it \
                 polls a clock until a time has passed, run it without --freeze"
            ),
            Note::Computes(process, _) => write!(
                f,
                "{process} has been computing for 10 s without a wait, so time passes as in \
                 reality; if it polls a clock until a time has passed, --pace 60x shortens that"
            ),
            Note::Awaits(process, call) => write!(
                f,
                "{process} has waited for 10 s for a device, a file system or another program \
                 outside of the tree (system call {call}, -1 if it cannot be seen), so time passes \
                 as in reality"
            ),
            Note::Refused(process, what) => write!(
                f,
                "{process} asks for {what}, and has been refused: the kernel would work for it \
                 unseen, and time could jump over that. Run it without tickless warp if it \
                 cannot do without"
            ),
            Note::Tracer(process) => write!(
                f,
                "{process} traces others, which fails here with EPERM: a thread has one tracer. \
                 Run debuggers and strace without tickless warp"
            ),
            Note::Counter(process) => write!(
                f,
                "{process} has waited again and again for 10 s; if it measures time by the CPU's \
                 counter (rdtsc), which its program reads, it ends with --tsc"
            ),
            Note::NoDeadline(process) => write!(
                f,
                "every thread waits, and none for a time: {process} waits for an event that \
                 nothing in the program causes. Ctrl-C ends it"
            ),
            Note::Outside(process, what) => write!(
                f,
                "{process} waits for {what}, so time passes as in reality; --outside ignore jumps \
                 all the same"
            ),
            Note::LeftOver(processes, Process { name, .. }) => write!(
                f,
                "the program has ended; {processes} of its processes still ran ({name}), and \
                 have been ended"
            ),
        }
    }
}
