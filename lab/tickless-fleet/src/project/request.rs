//! The request for a projection (a run of a recorded trace on a simulated machine), and its errors.

use std::io;
use tickless_machine::size::CPUS_MAX;
use tickless_trace::replay::ReplayPolicy;

/// The clock of a simulated machine that runs a recorded trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    Tsc,
    /// One slow counter, shared by all CPUs; every CPU reads it itself.
    Hpet,
    /// One slow counter, shared by all CPUs; one CPU at a time reads it, for all that wait.
    Combined,
}

impl Clock {
    pub const ALL: [Clock; 3] = [Clock::Tsc, Clock::Hpet, Clock::Combined];

    pub const fn name(self) -> &'static str {
        match self {
            Clock::Tsc => "tsc",
            Clock::Hpet => "hpet",
            Clock::Combined => "combined",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    pub cpus: u16,
    pub policy: ReplayPolicy,
    pub clock: Clock,
    pub seed: u64,
    /// The length of the part of the trace that is run; `None` for a length with about
    /// [`Request::OPERATIONS`] operations.
    pub seconds: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("the trace has no operations on timers to lay onto a machine; record timer:*")]
    NoOperations,
    #[error(
        "a projection knows eager, lazy and restart-aware, not {}: it has no scheduler", .0.name()
    )]
    Policy(ReplayPolicy),
    #[error("{0} CPUs; ask for 1 to {CPUS_MAX}")]
    Cpus(u16),
    #[error("{0} seconds are no time; ask for more than 0")]
    Seconds(f64),
    #[error("memory for the simulated CPUs' stacks: {0}; ask for fewer CPUs")]
    Memory(io::Error),
    #[error(
        "the trace is longer than a simulated machine of so many CPUs can run: some hours; ask for \
         fewer seconds"
    )]
    TooLong,
}

impl Request {
    /// The number of operations that are run by default. Their simulation takes some seconds.
    pub const OPERATIONS: u64 = 1_000_000;
}
