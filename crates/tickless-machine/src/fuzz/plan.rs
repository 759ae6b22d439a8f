//! The faults of a history: late, lost and slow interrupts, CPUs that are stopped, a clock that
//! stops or jumps. All end with the safety phase.

use super::{FaultCounts, SAFE_UNTIL};
use crate::fault::Faults;
use crate::irq::Vector;
use crate::random::Random;
use std::cell::RefCell;
use std::rc::Rc;
use tickless_core::time::{CpuId, Ns};

/// The faults of one history.
pub(super) struct FaultPlan {
    random: Random,
    /// The greatest delay of an interrupt. Most have none.
    late_max: u64,
    /// One in this many device events is lost; zero for none.
    loses_one_in: u64,
    /// At one in this many computations the CPU is stopped; zero for none.
    steals_one_in: u64,
    clock_errors: Vec<ClockError>,
    counts: Rc<RefCell<FaultCounts>>,
}

/// An interval in which the clock shows one wrong time.
#[derive(Clone, Copy)]
struct ClockError {
    from: Ns,
    to: Ns,
    shows: Ns,
}

/// The delay of a slow interrupt between CPUs.
const SLOW: u64 = 2_000_000;
/// The longest time for which a CPU is stopped.
const STOLEN_MAX: u64 = 4_000_000;
/// The longest clock error.
const CLOCK_ERROR_MAX: u64 = 2_000_000;

impl FaultPlan {
    pub(super) fn draw(random: &mut Random, counts: &Rc<RefCell<FaultCounts>>) -> FaultPlan {
        let mut pick = |end| random.below(end) as usize;
        let late_max = [0, 5_000, 50_000][pick(3)];
        let loses_one_in = [0, 0, 40, 400][pick(4)];
        let steals_one_in = [0, 50, 500][pick(3)];
        let clock_errors = pick(3) as u64;
        let between = SAFE_UNTIL.0 / 3;
        let clock_errors = (0..clock_errors)
            .map(|number| {
                let from = Ns(number * between + random.below(between - CLOCK_ERROR_MAX));
                let to = from.after(Ns(random.below(CLOCK_ERROR_MAX)));
                // The clock stops and then jumps to the time, or jumps ahead and waits for it.
                let shows = if random.below(2) == 0 { from } else { to };
                ClockError { from, to, shows }
            })
            .collect();
        let own = Random::new(random.draw());
        let counts = Rc::clone(counts);
        FaultPlan { random: own, late_max, loses_one_in, steals_one_in, clock_errors, counts }
    }

    /// Returns true once in this many times; never if that is zero.
    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.random.below(times) == 0
    }

    /// Draws a delay, mostly zero.
    fn delay(&mut self, most: u64) -> Ns {
        let late = if self.random.below(4) > 0 { 0 } else { self.random.below(most + 1) };
        self.counts.borrow_mut().late += u64::from(late > 0);
        Ns(late)
    }
}

impl Faults for FaultPlan {
    fn interrupt(&mut self, _: CpuId, vector: Vector, now: Ns) -> Option<Ns> {
        if now >= SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        // Only the timer core's own interrupt may be lost; the little kernel relies on the others.
        if vector == Vector::Look && self.once_in(self.loses_one_in) {
            self.counts.borrow_mut().lost += 1;
            return None;
        }
        if self.once_in(64) {
            self.counts.borrow_mut().late += 1;
            return Some(Ns(SLOW));
        }
        Some(self.delay(self.late_max))
    }

    fn device(&mut self, _: CpuId, at: Ns) -> Option<Ns> {
        if at > SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        if self.once_in(self.loses_one_in) {
            self.counts.borrow_mut().lost += 1;
            return None;
        }
        Some(self.delay(10 * self.late_max))
    }

    fn steal(&mut self, _: CpuId, now: Ns) -> Ns {
        if now >= SAFE_UNTIL || !self.once_in(self.steals_one_in) {
            return Ns::ZERO;
        }
        self.counts.borrow_mut().thefts += 1;
        Ns(self.random.below(STOLEN_MAX))
    }

    fn clock(&mut self, at: Ns) -> Ns {
        let error = self.clock_errors.iter().find(|error| (error.from..error.to).contains(&at));
        let Some(error) = error else { return at };
        self.counts.borrow_mut().wrong_times += 1;
        error.shows
    }
}
