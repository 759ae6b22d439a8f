//! Measures a counter's rate against the system's clock, and keeps our own clock, which is computed
//! from the counter, in step with the system's.
//!
//! The rate is measured between two comparisons of the clocks that are some ten seconds apart. An
//! error that our clock has accumulated is corrected by a small change of the slope of the line
//! from counts to time. Two events must not be mistaken for a change of rate:
//! - During a suspend the counter can continue while `CLOCK_MONOTONIC` stops. With a rate measured
//!   across a suspend, our clock would be slow for hours. So if the clocks advanced at another rate
//!   than the known one since the last comparison, only the *offset* between them changes: both
//!   clocks continue from where they are.
//! - The counter can restart at zero. Then our clock continues from the system's time.
//!
//! Nothing here reads a clock, so the tests can simulate a suspend.

use crate::clock::slope::{FRACTION_BITS, Slope};
use crate::time::Ns;

/// The largest change of slope to correct an error: 500 ppm, the kernel's own bound for slewing.
const SLEW: f64 = 500e-6;
/// Two measurements of a rate count as equal if they differ by no more than this fraction: the
/// system's clock can be slewed one way during the first and the other way during the second.
const TOLERANCE: f64 = 2.0 * SLEW;
/// After each comparison the slope is chosen so that our clock's error would be gone within this
/// time, if the change of slope is not limited by `SLEW`. Comparisons are rarely closer to each
/// other than this.
pub const EVERY: Ns = Ns::from_ms(100);
/// The rate is measured between two comparisons. Once the clock has run for a while, they are one
/// to two times this far apart.
const BASELINE: Ns = Ns::from_secs(10);
/// The largest error of our clock that is corrected, in ns; correcting it takes a minute. A larger
/// error is accepted, and becomes part of the offset between the clocks.
const FAR: f64 = 30e6;

/// A comparison: readings of the counter and of the system's clock at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The counter's reading.
    pub counter: u64,
    /// The time of the system's clock.
    pub system: Ns,
    /// The uncertainty of the counter's reading, in cycles: the count can be this much off.
    pub doubt: u64,
}

/// How the line continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// Its slope.
    pub slope: Slope,
    /// The clock jumps ahead to this time if it would otherwise continue from an earlier time.
    pub at_least: Ns,
    /// How the counter ran since the last comparison of the clocks.
    pub step: Step,
}

/// How a counter ran between two comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// At the known rate.
    Steady,
    /// The counter ran at another rate than the known one: the machine was suspended, the first
    /// measurement of the rate was disturbed, or the counter is bad.
    Odd,
    /// Backwards: it has restarted.
    Anew,
}

/// The measured relation of the two clocks.
#[derive(Clone, Debug)]
pub struct Discipline {
    rate: Rate,
    /// The comparison at which the current measurement of the rate began, and the one at which the
    /// next measurement begins.
    bases: [Moment; 2],
    last: Moment,
    /// How far our clock should be ahead of the system's, in nanoseconds.
    offset: f64,
    /// Whether the last comparison found that the counter had not run at the known rate, and the
    /// known rate was kept nevertheless.
    is_doubtful: bool,
}

/// Nanoseconds per cycle, and their relative uncertainty.
#[derive(Clone, Copy, Debug)]
struct Rate {
    ns: f64,
    doubt: f64,
}

impl Rate {
    /// Returns the mean time per count between two comparisons, and its uncertainty.
    fn between(from: Moment, to: Moment) -> Rate {
        let cycles = to.counter.saturating_sub(from.counter).max(1) as f64;
        let ns = to.system.since(from.system).0 as f64 / cycles;
        Rate { ns, doubt: (from.doubt + to.doubt) as f64 / cycles }
    }

    fn fits(self, other: Rate) -> bool {
        (self.ns / other.ns - 1.0).abs() <= TOLERANCE + self.doubt + other.doubt
    }

    fn slope(self, bend: f64) -> Slope {
        Slope((self.ns * (1.0 + bend) * (1u64 << FRACTION_BITS) as f64) as u64)
    }
}

impl Discipline {
    /// Starts with a first measurement of the rate, between two comparisons.
    pub fn new(from: Moment, to: Moment) -> Discipline {
        let rate = Rate::between(from, to);
        Discipline { rate, bases: [from, to], last: to, offset: 0.0, is_doubtful: false }
    }

    /// Returns the slope of the line from counts to time at the known rate, without a correction.
    pub fn slope(&self) -> Slope {
        self.rate.slope(0.0)
    }

    /// Processes a comparison made when our clock showed `ours`. Returns how our clock continues.
    pub fn compare(&mut self, now: Moment, ours: Ns) -> Course {
        let last = core::mem::replace(&mut self.last, now);
        let behind = now.system.0 as f64 + self.offset - ours.0 as f64;
        if now.counter < last.counter {
            self.bases = [now; 2];
            self.offset -= behind.min(0.0);
            let at_least = Ns((now.system.0 as f64 + self.offset) as u64);
            return Course { slope: self.slope(), at_least, step: Step::Anew };
        }
        let step = Rate::between(last, now);
        if !step.fits(self.rate) {
            self.bases = [now; 2];
            self.offset -= behind;
            // If the measured rate does not fit the known one, assume a suspend. If that happens
            // twice in a row, assume that the known rate is wrong.
            if self.is_doubtful && step.ns > 0.0 {
                self.rate = step;
            }
            self.is_doubtful = !self.is_doubtful;
            return Course { slope: self.slope(), at_least: Ns::ZERO, step: Step::Odd };
        }
        self.is_doubtful = false;
        self.rate = Rate::between(self.bases[0], now);
        if now.system.since(self.bases[1].system) > BASELINE {
            self.bases = [self.bases[1], now];
        }
        if behind.abs() > FAR {
            self.offset -= behind;
            return Course { slope: self.slope(), at_least: Ns::ZERO, step: Step::Steady };
        }
        let bend = (behind / EVERY.0 as f64).clamp(-SLEW, SLEW);
        Course { slope: self.rate.slope(bend), at_least: Ns::ZERO, step: Step::Steady }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::segment::{Segment, SourceId};
    use crate::clock::slope::Point;

    /// A simulated machine whose counter and system clock the tests control.
    struct Machine {
        counter: f64,
        system: f64,
        cycles_per_ns: f64,
        line: Segment,
        discipline: Discipline,
        /// The clock's latest reading. A later reading must not be less.
        last: Ns,
    }

    impl Machine {
        /// A machine whose first calibration has the relative error `wrong`.
        fn new(cycles_per_ns: f64, wrong: f64) -> Machine {
            let moment = |counter: f64, system: f64| Moment {
                counter: counter as u64,
                system: Ns(system as u64),
                doubt: 100,
            };
            let (counter, system) = (1e12, 5e9);
            let now = (counter + 1e6 * cycles_per_ns, system + 1e6 * (1.0 + wrong));
            let discipline = Discipline::new(moment(counter, system), moment(now.0, now.1));
            let line = Segment {
                source: SourceId(0),
                count0: now.0 as u64,
                start: Point::at(Ns(now.1 as u64)),
                slope: discipline.slope(),
            };
            let (counter, system) = now;
            Machine { counter, system, cycles_per_ns, line, discipline, last: Ns::ZERO }
        }

        fn run(&mut self, ns: f64) {
            self.counter += ns * self.cycles_per_ns;
            self.system += ns;
            let now = self.now();
            let moment =
                Moment { counter: self.counter as u64, system: Ns(self.system as u64), doubt: 100 };
            let course = self.discipline.compare(moment, now);
            let next = self.line.continued(self.counter as u64, course.slope);
            self.line = next.not_before(course.at_least);
            self.now();
        }

        fn now(&mut self) -> Ns {
            let now = self.line.at(self.counter as u64).ns;
            assert!(now >= self.last, "{now:?} after {:?}", self.last);
            self.last = now;
            now
        }

        /// The relative error of the clock's speed over the next 100 ms.
        fn error(&mut self) -> f64 {
            let before = self.now();
            self.run(1e8);
            (self.now() - before).as_nanos() as f64 / 1e8 - 1.0
        }

        fn apart(&mut self) -> f64 {
            self.now().0 as f64 - self.system
        }
    }

    #[test]
    fn a_bad_calibration_is_corrected() {
        for wrong in [0.0, 60e-6, -60e-6, 900e-6, -900e-6, 0.3, -0.3] {
            let mut machine = Machine::new(2.9, wrong);
            (0..100).for_each(|_| machine.run(1.5e8));
            assert!(machine.error().abs() < 1e-6, "{wrong}: rate is off by {}", machine.error());
            if wrong.abs() < 100e-6 {
                assert!(machine.apart().abs() < 1000.0, "{wrong}: {} ns apart", machine.apart());
            }
        }
    }

    #[test]
    fn an_idle_hour_after_a_bad_calibration_is_corrected_at_once() {
        let mut machine = Machine::new(3.1, 80e-6);
        machine.run(3.6e12);
        for _ in 0..3 {
            assert!(machine.error().abs() < 1e-6, "{}", machine.error());
        }
    }

    #[test]
    fn a_counter_that_continues_over_a_suspend_does_not_change_the_rate() {
        let mut machine = Machine::new(2.0, 40e-6);
        for asleep in [5e9, 8.0 * 3.6e12, 1e9] {
            (0..50).for_each(|_| machine.run(2e8));
            machine.counter += asleep * machine.cycles_per_ns;
            machine.run(2e8);
            for _ in 0..100 {
                assert!(machine.error().abs() < 2.0 * SLEW, "{}", machine.error());
            }
            assert!(machine.error().abs() < 1e-6);
        }
    }

    #[test]
    fn a_counter_that_restarts_does_not_turn_the_clock_back() {
        let mut machine = Machine::new(2.0, 0.0);
        for _ in 0..3 {
            (0..50).for_each(|_| machine.run(2e8));
            machine.system += 4e9;
            machine.counter = 1000.0;
            machine.run(2e8);
            assert!(machine.apart().abs() < 1e4, "{} ns apart", machine.apart());
            (0..20).for_each(|_| assert!(machine.error().abs() < 2.0 * SLEW));
            assert!(machine.error().abs() < 1e-6);
        }
    }
}
