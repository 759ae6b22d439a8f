//! Wake-up latency: how late a thread wakes that sleeps until a deadline, over and over.
//!
//! The measurement is the one of cyclictest: a thread sleeps until a deadline, reads the clock when
//! it wakes, and sleeps until the next deadline, one interval later. For this library's own timers,
//! the timer's callback reads the clock.

mod kernel;
mod ours;
mod plan;
mod row;
mod tally;

pub use plan::{Break, Plan, Sample};
pub use row::{Buckets, Figures, Row, Spreads};
pub use tally::{Bins, Slice, Tally};

use crate::error::LabError;
use crate::measure::{interleave, other_threads};
use crate::progress::Progress;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeper {
    ClockNanosleep,
    Timerfd,
    Hrtimer,
    HrtimerSpin,
    HrtimerAuto,
    Timeout,
}

impl Sleeper {
    pub const ALL: [Sleeper; 6] = [
        Sleeper::ClockNanosleep,
        Sleeper::Timerfd,
        Sleeper::Hrtimer,
        Sleeper::HrtimerSpin,
        Sleeper::HrtimerAuto,
        Sleeper::Timeout,
    ];

    /// All ways to sleep except the last, the coarse timer, which fires late on purpose.
    pub const EXACT: &[Sleeper] = match Sleeper::ALL.split_last() {
        Some((_, exact)) => exact,
        None => &[],
    };

    pub const fn name(self) -> &'static str {
        self.describe().0
    }

    /// Returns the name, and what sleeps.
    pub const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Sleeper::ClockNanosleep => {
                ("clock_nanosleep", "A thread in clock_nanosleep, as in cyclictest")
            }
            Sleeper::Timerfd => ("timerfd", "A thread that reads a timerfd"),
            Sleeper::Hrtimer => {
                ("hrtimer", "Our high-resolution timer: its callback, on its driver's thread")
            }
            Sleeper::HrtimerSpin => {
                ("hrtimer_spin", "hrtimer, with a driver that wakes 100 us earlier and spins")
            }
            Sleeper::HrtimerAuto => {
                ("hrtimer_auto", "hrtimer_spin, learning how much earlier, for a 20th of a CPU")
            }
            Sleeper::Timeout => {
                ("timeout", "Our coarse timer, late by up to 13 % and a tick on purpose")
            }
        }
    }

    pub fn named(name: &str) -> Option<Sleeper> {
        Sleeper::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    pub fn measure(self, plan: &Plan) -> Result<Slice, LabError> {
        match self {
            Sleeper::ClockNanosleep => kernel::clock_nanosleep(plan),
            Sleeper::Timerfd => kernel::timerfd(plan),
            Sleeper::Hrtimer | Sleeper::HrtimerSpin | Sleeper::HrtimerAuto | Sleeper::Timeout => {
                ours::measure(plan, self)
            }
        }
    }
}

/// Measures the ways to sleep alternately, each `turns` times, so that a disturbance affects all of
/// them. Returns for each way to sleep the sum of its turns.
pub fn measure(
    sleepers: &[Sleeper],
    plan: &Plan,
    turns: usize,
    progress: &dyn Progress,
) -> Result<Vec<Slice>, LabError> {
    let slices = interleave("sleeping", sleepers.len(), turns, progress, |sleeper| {
        if plan.is_stopped() {
            return Ok::<_, LabError>(Slice::default());
        }
        let before = other_threads();
        let slice = sleepers[sleeper].measure(plan)?;
        let others = [before, other_threads()].into_iter().flatten().collect();
        Ok(Slice { others, ..slice })
    })?;
    Ok(slices.into_iter().map(Slice::sum).collect())
}
