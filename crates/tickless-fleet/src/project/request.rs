//! The request of a projection, and why it can fail.

use serde::{Deserialize, Serialize};
use std::io;
use tickless_trace::replay::ReplayPolicy;

/// The clock of the machine's kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Each CPU's own cycle counter.
    Tsc,
    /// One slow counter, which every CPU reads.
    Hpet,
    /// One slow counter, which one CPU at a time reads for all.
    Combined,
}

/// The machine and the part of the trace that are projected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// The number of CPUs; it is rounded up to the next number that the machine can have.
    pub cpus: u16,
    /// The policy.
    pub policy: ReplayPolicy,
    /// The clock.
    pub clock: Clock,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The length of the part that is run; `None` for about [`Request::OPERATIONS`] operations.
    pub seconds: Option<f64>,
}

/// Why a trace cannot be projected.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The trace has no operations.
    #[error("the trace has no operations on timers to lay onto a machine; record timer:*")]
    NoOperations,
    /// The policy needs a scheduler, which a trace of timers does not show.
    #[error(
        "a projection knows eager, lazy and restart-aware, not {}: it has no scheduler", .0.name()
    )]
    Policy(ReplayPolicy),
    /// There is no memory for the simulated CPUs' stacks.
    #[error("memory for the simulated CPUs' stacks: {0}; ask for fewer CPUs")]
    Memory(io::Error),
    /// The trace is longer than a simulated machine of this size can run.
    #[error(
        "the trace is longer than a simulated machine of so many CPUs can run: some hours; ask for \
         fewer seconds"
    )]
    TooLong,
}

impl Clock {
    /// All clocks.
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
    /// The number of operations that are run by default: some seconds on one CPU.
    pub const OPERATIONS: u64 = 1_000_000;
}
