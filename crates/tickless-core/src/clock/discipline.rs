//! How fast a counter runs by the system's clock, and what to do when the two part.
//!
//! The rate is measured from one comparison of the two clocks to another some ten seconds
//! later, and what the clock has gone astray meanwhile is made good by bending the line a
//! little. Two things must not be mistaken for a rate:
//! - Over a suspend the counter may go on counting while `CLOCK_MONOTONIC` stops. By a rate
//!   measured across that the clock would run at a fraction of its speed for hours. A step
//!   that does not fit the rate known so far therefore only moves the *offset* between the
//!   clocks: both go on from where they are.
//! - The counter may begin anew at zero. The clock goes on from the system's.
//!
//! Nothing here reads a clock, so that the tests can suspend a machine.

use crate::clock::slope::{FRACTION_BITS, Slope};
use crate::time::Ns;

/// How far the rate may be bent to bring the line back to `CLOCK_MONOTONIC`: 500 ppm, the
/// kernel's own bound for slewing.
const SLEW: f64 = 500e-6;
/// How far two rates may differ that are one: the system's clock may be slewed one way while
/// the first was measured and the other way now.
const TOLERANCE: f64 = 2.0 * SLEW;
/// How long it takes, at most, to make good an error: comparisons are seldom nearer.
pub const EVERY: Ns = Ns::from_ms(100);
/// The rate is measured over once to twice this.
const BASELINE: Ns = Ns::from_secs(10);
/// An error that would take a minute to make good becomes part of the offset.
const FAR: f64 = 30e6;

/// Both clocks at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// What the counter stands at.
    pub counter: u64,
    /// What the system's clock shows.
    pub system: Ns,
    /// The counter may be wrong by this many cycles, either way.
    pub doubt: u64,
}

/// How the line goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// How fast.
    pub slope: Slope,
    /// Not before this time.
    pub at_least: Ns,
    /// Did the counter run as it was known to?
    pub step: Step,
}

/// How a counter ran from one comparison to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// At the rate that was known.
    Steady,
    /// At another: a suspend, a disturbed first measurement, or a counter gone bad.
    Odd,
    /// Backwards: it has begun anew.
    Anew,
}

/// What is known about the two clocks.
#[derive(Clone, Debug)]
pub struct Discipline {
    rate: Rate,
    /// What the rate is measured from, and what it will be measured from after that.
    bases: [Moment; 2],
    last: Moment,
    /// How far this clock is meant to be ahead of the system's, in nanoseconds.
    offset: f64,
    /// Did the last step not fit the rate either?
    is_doubtful: bool,
}

/// Nanoseconds per cycle, and the part of it that may be wrong.
#[derive(Clone, Copy, Debug)]
struct Rate {
    ns: f64,
    doubt: f64,
}

impl Rate {
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
    /// From a first measurement of the rate.
    pub fn new(from: Moment, to: Moment) -> Discipline {
        let rate = Rate::between(from, to);
        Discipline { rate, bases: [from, to], last: to, offset: 0.0, is_doubtful: false }
    }

    /// The line's slope by what is known.
    pub fn slope(&self) -> Slope {
        self.rate.slope(0.0)
    }

    /// Takes a comparison into account that was made when this clock showed `ours`.
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
            // Once is a suspend; twice, and it is the rate that was wrong.
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
    use crate::clock::counter::Width;
    use crate::clock::segment::{Segment, SourceId};
    use crate::clock::slope::Point;

    /// A machine whose counter and clock can be made to do anything.
    struct Machine {
        counter: f64,
        system: f64,
        cycles_per_ns: f64,
        line: Segment,
        discipline: Discipline,
        /// The latest reading: time must not go back behind it.
        last: Ns,
    }

    impl Machine {
        /// With a first calibration that is wrong by so much.
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
                width: Width::FULL,
                count0: now.0 as u64,
                start: Point::at(Ns(now.1 as u64)),
                slope: discipline.slope(),
            };
            let (counter, system) = now;
            Machine { counter, system, cycles_per_ns, line, discipline, last: Ns::ZERO }
        }

        /// Runs on, with a comparison at the end.
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

        /// By how much the clock's speed is wrong over the next 100 ms.
        fn error(&mut self) -> f64 {
            let before = self.now();
            self.run(1e8);
            (self.now() - before).as_nanos() as f64 / 1e8 - 1.0
        }

        fn apart(&mut self) -> f64 {
            self.now().0 as f64 - self.system
        }
    }

    /// Goal: whatever the first calibration was worth, the clock finds the rate and the time.
    #[test]
    fn a_bad_calibration_is_made_good() {
        for wrong in [0.0, 60e-6, -60e-6, 900e-6, -900e-6, 0.3, -0.3] {
            let mut machine = Machine::new(2.9, wrong);
            (0..100).for_each(|_| machine.run(1.5e8));
            assert!(machine.error().abs() < 1e-6, "{wrong}: rate is off by {}", machine.error());
            if wrong.abs() < 100e-6 {
                assert!(machine.apart().abs() < 1000.0, "{wrong}: {} ns apart", machine.apart());
            }
        }
    }

    /// Goal: a calibration that is good for nothing but an hour of idleness does no harm: the
    /// rate is right at once, and no minute is spent on making good what was lost.
    #[test]
    fn an_hour_of_idleness() {
        let mut machine = Machine::new(3.1, 80e-6);
        machine.run(3.6e12);
        for _ in 0..3 {
            assert!(machine.error().abs() < 1e-6, "{}", machine.error());
        }
    }

    /// Goal: over a suspend the counter goes on and the system's clock does not: the clock does
    /// not slow down for it.
    #[test]
    fn the_counter_goes_on_over_a_suspend() {
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

    /// Goal: a counter that begins anew stops the clock for no longer than until somebody looks,
    /// and never turns it back.
    #[test]
    fn the_counter_begins_anew() {
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
