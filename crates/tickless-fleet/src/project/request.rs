//! The request for a projection (a run of a recorded trace on a simulated machine), and its errors.

use serde::{Deserialize, Serialize};
use std::io;
use tickless_trace::replay::ReplayPolicy;

/// The clock that the simulated kernel reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Each CPU's own cycle counter.
    Tsc,
    /// One slow counter, shared by all CPUs; every CPU reads it itself.
    Hpet,
    /// One slow counter, shared by all CPUs; one CPU at a time reads it, for all that wait.
    Combined,
}

/// What is projected: onto how many CPUs, under which policy, and how much of the trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// The number of CPUs onto which the trace is projected.
    pub cpus: u16,
    /// The policy.
    pub policy: ReplayPolicy,
    /// The clock.
    pub clock: Clock,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The length of the part of the trace that is run; `None` for a length with about
    /// [`Request::OPERATIONS`] operations.
    pub seconds: Option<f64>,
}

/// The reason why a trace cannot be projected.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The trace has no operations.
    #[error("the trace has no operations on timers to lay onto a machine; record timer:*")]
    NoOperations,
    /// The policy depends on task switches, which a trace of timers does not record.
    #[error(
        "a projection knows eager, lazy and restart-aware, not {}: it has no scheduler", .0.name()
    )]
    Policy(ReplayPolicy),
    /// There is no memory for the simulated CPUs' stacks.
    #[error("memory for the simulated CPUs' stacks: {0}; ask for fewer CPUs")]
    Memory(io::Error),
    /// The trace is longer than the engine can simulate with this number of CPUs: some hours.
    #[error(
        "the trace is longer than a simulated machine of so many CPUs can run: some hours; ask for \
         fewer seconds"
    )]
    TooLong,
}

impl Clock {
    /// All clocks.
    pub const ALL: [Clock; 3] = [Clock::Tsc, Clock::Hpet, Clock::Combined];

    /// The clock's name in campaign files, in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Tsc => "tsc",
            Clock::Hpet => "hpet",
            Clock::Combined => "combined",
        }
    }
}

impl Request {
    /// The number of operations that are run by default. The simulation of so many takes some
    /// seconds.
    pub const OPERATIONS: u64 = 1_000_000;
}
