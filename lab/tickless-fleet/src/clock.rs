//! The clock of a simulated machine that runs a recorded trace.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
