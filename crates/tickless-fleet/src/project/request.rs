//! What is asked of a projection, and why there is none.

use std::fmt;
use std::io;
use tickless_trace::replay::ReplayPolicy;

/// What a kernel on the machine reads the time from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Each CPU's own cycle counter.
    Tsc,
    /// One slow counter, read by everybody.
    Hpet,
    /// One slow counter, read by one CPU for all.
    Combined,
}

/// What is to be worked out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// How many CPUs the machine is to have; it has the next number that it can have.
    pub cpus: u16,
    /// What removals do to the event device.
    pub policy: ReplayPolicy,
    /// Where the time is read from.
    pub clock: Clock,
    /// Where randomness starts.
    pub seed: u64,
    /// How much of the trace is run; [`Request::OPERATIONS`] operations' worth if `None`.
    pub seconds: Option<f64>,
}

/// Why a trace cannot be laid onto a machine.
#[derive(Debug)]
pub enum ProjectError {
    /// Nothing happens in the trace.
    NoOperations,
    /// The policy needs a scheduler, which a trace of timers does not show.
    Policy(ReplayPolicy),
    /// Memory for the simulated CPUs' stacks.
    Memory(io::Error),
    /// The trace is longer than a simulated machine of this size reaches.
    TooLong,
}

impl Clock {
    /// All of them.
    pub const ALL: [Clock; 3] = [Clock::Tsc, Clock::Hpet, Clock::Combined];

    /// The name in files, in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Tsc => "tsc",
            Clock::Hpet => "hpet",
            Clock::Combined => "combined",
        }
    }
}

impl Request {
    /// How many operations are run unless told otherwise: some seconds on one CPU.
    pub const OPERATIONS: u64 = 1_000_000;
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProjectError::NoOperations => f.write_str(
                "the trace has no operations on timers to lay onto a machine; record timer:*",
            ),
            ProjectError::Policy(policy) => write!(
                f,
                "a projection knows eager, lazy and restart-aware, not {}: it has no scheduler",
                policy.name()
            ),
            ProjectError::TooLong => f.write_str(
                "the trace is longer than a simulated machine of so many CPUs can run: some hours; \
                 ask for fewer seconds",
            ),
            ProjectError::Memory(error) => {
                write!(f, "memory for the simulated CPUs' stacks: {error}; ask for fewer CPUs")
            }
        }
    }
}

impl std::error::Error for ProjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ProjectError::Memory(error) => Some(error),
            _ => None,
        }
    }
}
