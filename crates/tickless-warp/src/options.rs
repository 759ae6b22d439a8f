//! What the caller chooses, and what it gets.

use crate::report::Report;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// How fast virtual time passes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Pace {
    /// Real time while a thread computes, and a jump to the next deadline when every thread waits.
    #[default]
    Jump,
    /// Only by jumps: computing takes no time.
    Frozen,
    /// This many times as fast as real time, without jumps. Must be finite and above zero.
    Times(f64),
}

/// What a wait for input from outside of the tree does to the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outside {
    /// Time is real while a thread waits for a terminal, pipe or socket that the program got as its
    /// standard input, and while it has a connection to another machine.
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
    /// What waits for the outside do to the clock.
    pub outside: Outside,
    /// Traps the instruction `rdtsc` too. Each clock read is a trapped system call then.
    pub traps_counter: bool,
    /// Orders deadlines of equal time at random, by this seed; in the order of arming if `None`.
    pub seed: Option<u64>,
    /// Records which threads waited for what.
    pub reports: bool,
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

/// What the user should know while the program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Clocks cannot be read without system calls.
    SlowClocks {
        /// Why.
        why: &'static str,
    },
    /// A program of 32 bits was about to run, whose system calls cannot be trapped. It was ended.
    ThirtyTwoBits {
        /// The program.
        name: String,
    },
    /// A set-uid program runs without the privileges that its file would give it.
    SetUid {
        /// The program.
        name: String,
    },
    /// A thread computes for long while others wait for their deadlines.
    Computes {
        /// The process.
        pid: i32,
        /// Its name.
        name: String,
        /// Whether only jumps move the clock.
        is_frozen: bool,
    },
    /// Every thread waits, and none has a deadline.
    NoDeadline {
        /// A process that waits.
        pid: i32,
        /// Its name.
        name: String,
    },
    /// A thread waits for the outside, which keeps the clock at real time.
    Outside {
        /// The process.
        pid: i32,
        /// Its name.
        name: String,
        /// What it waits for.
        what: &'static str,
    },
    /// The program has ended, and processes that it had started were ended.
    LeftOver {
        /// How many.
        processes: usize,
        /// The name of one of them.
        name: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::SlowClocks { why } => {
                write!(f, "each clock read is a system call, which takes about 10 us: {why}")
            }
            Note::ThirtyTwoBits { name } => write!(
                f,
                "{name} is a program of 32 bits, whose time cannot be virtual; it has been ended. \
                 Build it for x86-64"
            ),
            Note::SetUid { name } => write!(
                f,
                "{name} is set-uid, and runs without its privileges because it is traced; run \
                 tickless as root to keep them"
            ),
            Note::Computes { pid, name, is_frozen } => {
                write!(f, "process {pid} ({name}) has been computing for 10 s without a wait, ")?;
                match is_frozen {
                    true => write!(f, "so time stands still: --freeze moves it by jumps only"),
                    false => write!(f, "so time passes as in reality; it may poll the clock"),
                }
            }
            Note::NoDeadline { pid, name } => write!(
                f,
                "every thread waits, and none for a time: process {pid} ({name}) waits for an \
                 event that nothing in the program causes. Ctrl-C ends it"
            ),
            Note::Outside { pid, name, what } => write!(
                f,
                "process {pid} ({name}) waits for {what}, so time passes as in reality; \
                 --outside ignore jumps all the same"
            ),
            Note::LeftOver { processes, name } => write!(
                f,
                "the program has ended; {processes} of its processes still ran ({name}), and \
                 have been ended"
            ),
        }
    }
}
