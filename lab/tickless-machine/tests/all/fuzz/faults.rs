//! The faults of one history. None is injected after its first part, the safety phase.

use super::history::{FaultCounts, SAFE_UNTIL};
use super::oracle::Oracle;
use std::rc::Rc;
use tickless_core::clock::discipline::SPAN;
use tickless_core::time::Ns;
use tickless_machine::fault::Faults;
use tickless_machine::irq::Vector;
use tickless_machine::random::Random;

pub(super) struct FaultPlan {
    random: Random,
    /// The greatest delay of a late interrupt, in nanoseconds. Most interrupts are not late.
    late_max: u64,
    /// One in this many timer interrupts is lost; zero if none is.
    loses_one_in: u64,
    /// The CPU is stopped in one of this many computations; zero if it never is.
    steals_one_in: u64,
    clock_errors: Vec<ClockError>,
    suspends: Vec<Suspend>,
    rate: Option<RateChange>,
    oracle: Rc<Oracle>,
}

/// An interval of true time, `from` to `to`, in which the clock always shows the time `shows`.
#[derive(Clone, Copy)]
struct ClockError {
    from: Ns,
    to: Ns,
    shows: Ns,
}

/// A suspend at the time `at`, during which the counters move by `counts`. Wraps around.
#[derive(Clone, Copy)]
struct Suspend {
    at: Ns,
    counts: u64,
}

/// From the time `from` on, the counters count this many thousandths of a nanosecond.
#[derive(Clone, Copy)]
struct RateChange {
    from: Ns,
    thousandths: u64,
}

const SLOW: u64 = 2_000_000;
const STOLEN_MAX: u64 = 4_000_000;
const CLOCK_ERROR_MAX: u64 = 2_000_000;
const COUNTER_START: u64 = 1 << 40;
/// The least rate of the counter after a change, in thousandths, and the number of rates.
const RATE_LEAST: u64 = 700;
const RATES: u64 = 701;

impl FaultPlan {
    pub(super) fn draw(random: &mut Random, oracle: &Rc<Oracle>) -> FaultPlan {
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
                // From `from` to `to` the clock either stands at `from`, and then jumps to the
                // right time, or has jumped ahead to `to`, where it stands until that comes.
                let shows = if random.below(2) == 0 { from } else { to };
                ClockError { from, to, shows }
            })
            .collect();
        // A suspend that is too short to be seen, or another rate, is followed by nothing else
        // before the clock has noticed it.
        let (mut suspends, mut rate) = (Vec::new(), None);
        let mut counts = FaultCounts::default();
        match random.below(6) {
            0 | 1 => {
                counts.stands = 1 + random.below(2);
                suspends.extend((0..counts.stands).map(|number| {
                    let at = Ns(number * between + random.below(between));
                    Suspend { at, counts: 1 + random.below(SPAN.0 - 1) }
                }));
            }
            2 => {
                counts.rates = 1;
                let from = Ns(random.below(SAFE_UNTIL.0));
                let thousandths = RATE_LEAST + random.below(RATES);
                counts.slowed = 1_000u64.saturating_sub(thousandths);
                rate = Some(RateChange { from, thousandths });
            }
            number => {
                counts.suspends = number - 2;
                suspends.extend((0..counts.suspends).map(|number| {
                    let at = Ns(number * between + random.below(between));
                    // The counters stand, go on for a while or for hours, or restart.
                    let counts = match random.below(4) {
                        0 => 0,
                        1 => 2 * SPAN.0 + random.below(SPAN.0),
                        2 => random.below(4 << 40),
                        _ => 0u64.wrapping_sub(random.below(COUNTER_START / 8)),
                    };
                    Suspend { at, counts }
                }));
            }
        }
        oracle.history.borrow_mut().faults = counts;
        let (random, oracle) = (Random::new(random.draw()), Rc::clone(oracle));
        FaultPlan {
            random,
            late_max,
            loses_one_in,
            steals_one_in,
            clock_errors,
            suspends,
            rate,
            oracle,
        }
    }

    /// Returns true with a probability of one in `times`; never if `times` is zero.
    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.random.below(times) == 0
    }

    fn delay(&mut self, most: u64) -> Ns {
        let late = if self.random.below(4) > 0 { 0 } else { self.random.below(most + 1) };
        self.oracle.history.borrow_mut().faults.late += u64::from(late > 0);
        Ns(late)
    }
}

impl Faults for FaultPlan {
    fn interrupt(&mut self, vector: Vector, now: Ns) -> Option<Ns> {
        if now >= SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        // Lose only interrupts that the timer code sends, which must tolerate that. The little
        // simulated kernel does not tolerate the loss of its own interrupts.
        if vector == Vector::Look && self.once_in(self.loses_one_in) {
            self.oracle.history.borrow_mut().faults.lost += 1;
            return None;
        }
        if self.once_in(64) {
            self.oracle.history.borrow_mut().faults.late += 1;
            return Some(Ns(SLOW));
        }
        Some(self.delay(self.late_max))
    }

    fn device(&mut self, at: Ns) -> Option<Ns> {
        if at > SAFE_UNTIL {
            return Some(Ns::ZERO);
        }
        if self.once_in(self.loses_one_in) {
            self.oracle.history.borrow_mut().faults.lost += 1;
            return None;
        }
        Some(self.delay(10 * self.late_max))
    }

    fn steal(&mut self, now: Ns) -> Ns {
        if now >= SAFE_UNTIL || !self.once_in(self.steals_one_in) {
            return Ns::ZERO;
        }
        self.oracle.history.borrow_mut().faults.thefts += 1;
        Ns(self.random.below(STOLEN_MAX))
    }

    fn clock(&mut self, at: Ns) -> Ns {
        let error = self.clock_errors.iter().find(|error| (error.from..error.to).contains(&at));
        let Some(error) = error else { return at };
        self.oracle.history.borrow_mut().faults.wrong_times += 1;
        error.shows
    }

    fn counter(&mut self, at: Ns) -> Option<u64> {
        let past = self.suspends.iter().filter(|suspend| suspend.at <= at);
        let moved = past.fold(COUNTER_START, |count, one| count.wrapping_add(one.counts));
        let more = self.rate.map_or(0, |rate| {
            (at.since(rate.from).0 as i64 * (rate.thousandths as i64 - 1_000) / 1_000) as u64
        });
        Some(at.0.wrapping_add(moved).wrapping_add(more))
    }
}
