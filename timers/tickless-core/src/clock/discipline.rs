//! Measures a counter's rate against the system's clock, and keeps our own clock, which is computed
//! from the counter, in step with the system's.
//!
//! The rate is measured between two comparisons of the clocks that are some ten seconds apart. An
//! error that our clock has accumulated is corrected by a small change of the slope of the line
//! from counts to time. The line is drawn anew with each comparison, and is valid for [`SPAN`] of
//! its counter, after which it must be compared again. So no thread has seen a later time than the
//! line's end, and the clock can continue from the system's time, whatever the counter has done:
//! - During a suspend the counter can continue while `CLOCK_MONOTONIC` stops. That time has not
//!   passed, and a rate that was measured across it would be wrong.
//! - The counter can restart at zero, or stand while the system's clock goes on.
//!
//! Nothing here reads a clock, so the tests can simulate a suspend.

use crate::clock::segment::{Segment, SourceId};
use crate::clock::slope::{FRACTION_BITS, Point, Slope};
use crate::time::Ns;

/// The largest change of slope to correct an error: 500 ppm, the kernel's own bound for slewing.
const SLEW: f64 = 500e-6;
/// Two measurements of a rate count as equal if they differ by no more than this fraction: the
/// system's clock can be slewed one way during the first and the other way during the second.
const TOLERANCE: f64 = 2.0 * SLEW;
/// After each comparison the slope is chosen so that our clock's error would be gone within this
/// time, in ns, if the change of slope is not limited by `SLEW`.
const SETTLING: f64 = 1e8;
/// How long a line is valid. A gap between the counter and the system's clock that is shorter can
/// remain unseen: timers can be early by this much. A comparison in each span costs a process that
/// reads the clock all the time 0.002 % of its time.
pub const SPAN: Ns = Ns::from_ms(10);
/// How far our clock can be ahead of the system's after a suspend, if the comparisons are exact: by
/// what a thread that read it just before can have seen, at the greatest difference of the rates.
pub const AHEAD_MAX: Ns = Ns((SPAN.0 as f64 * TOLERANCE) as u64 + 1);
/// The rate is measured between two comparisons. Once the clock has run for a while, they are one
/// to two times this far apart.
const BASELINE: Ns = Ns::from_secs(10);
/// The largest error of our clock that is corrected by its slope, in ns. A larger error comes from
/// a long time without a reading: then the clock continues from the system's time.
const FAR: f64 = 1e3;

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

/// The measured relation of the two clocks.
#[derive(Clone, Debug)]
pub struct Discipline {
    rate: Rate,
    /// The comparison at which the current measurement of the rate began, and the one at which the
    /// next measurement begins.
    bases: [Moment; 2],
    last: Moment,
    /// The mean time per count between the last two comparisons.
    last_step: Rate,
    /// How many comparisons in a row have found that the counter had not run at the known rate.
    odd_steps: u32,
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
        Discipline { rate, bases: [from, to], last: to, last_step: rate, odd_steps: 0 }
    }

    /// Returns the line that begins with the last comparison, when our clock shows `start`.
    fn line(&self, source: SourceId, start: Point) -> Segment {
        let behind = signed(self.last.system, start.ns);
        Segment {
            source,
            count0: self.last.counter,
            start,
            slope: self.rate.slope((behind / SETTLING).clamp(-SLEW, SLEW)),
            span: (SPAN.0 as f64 / self.rate.ns) as u64,
        }
    }

    /// Returns the first line, which shows the system's time.
    pub fn first(&self, source: SourceId) -> Segment {
        self.line(source, Point::at(self.last.system))
    }

    /// Returns how many comparisons in a row have found that the counter had not run at the known
    /// rate: the machine was suspended, the first measurement was disturbed, or the counter is bad.
    pub fn odd_steps(&self) -> u32 {
        self.odd_steps
    }

    /// Processes a comparison made after the end of `old`, the current line. Returns the next line.
    pub fn next(&mut self, now: Moment, old: Segment) -> Segment {
        let last = core::mem::replace(&mut self.last, now);
        let (step, passed) = (Rate::between(last, now), now.system.since(last.system));
        let before = core::mem::replace(&mut self.last_step, step);
        let is_steady = now.counter >= last.counter && step.fits(self.rate);
        let counted = now.counter.saturating_sub(last.counter) as f64 * self.rate.ns;
        // If the counter has moved by a whole span more than the system's clock, or has restarted,
        // it did so in one step, and no thread has read the old line after that step. So the
        // latest reading was the one that the system's clock allows. If it has moved by less, a
        // thread may have read the line until its end.
        let is_stand = now.counter < last.counter || counted > passed.after(SPAN).0 as f64;
        let seen = if is_stand && !is_steady {
            let doubt = (last.doubt + now.doubt) as f64 * self.rate.ns;
            let most = passed.0 as f64 * (1.0 + TOLERANCE) + doubt;
            Point::at(old.start.ns.after(Ns(most as u64 + 1))).min(old.end())
        } else {
            old.end()
        };
        if is_steady {
            self.odd_steps = 0;
            self.rate = Rate::between(self.bases[0], now);
            if now.system.since(self.bases[1].system) > BASELINE {
                self.bases = [self.bases[1], now];
            }
        } else {
            self.bases = [now; 2];
            // Odd steps that are far apart are not in a row: the machine was suspended again.
            let in_a_row = if passed > BASELINE { 0 } else { self.odd_steps };
            self.odd_steps = in_a_row + 1;
            // If another rate is measured twice in a row, the known one was wrong. The first time,
            // the counter may have changed its rate in between. One that seems to be more than
            // twice as fast rather was in a stand that is too short to be seen.
            let is_rate = step.fits(before) || step.ns > self.rate.ns / 2.0;
            if self.odd_steps % 2 == 0 && !is_stand && step.ns > 0.0 && is_rate {
                self.rate = step;
            }
        }
        let ours = old.extended(now.counter);
        let far = FAR + now.doubt as f64 * self.rate.ns;
        let continues = is_steady && signed(now.system, ours.ns).abs() <= far && ours >= seen;
        self.line(old.source, if continues { ours } else { Point::at(now.system).max(seen) })
    }
}

/// Returns `a - b` in nanoseconds.
fn signed(a: Ns, b: Ns) -> f64 {
    a.0.wrapping_sub(b.0) as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let line = discipline.first(SourceId(0));
            let (counter, system) = now;
            Machine { counter, system, cycles_per_ns, line, discipline, last: Ns::ZERO }
        }

        fn run(&mut self, ns: f64) {
            self.counter += ns * self.cycles_per_ns;
            self.system += ns;
            self.now();
        }

        /// Reads the clock, as a platform does.
        fn now(&mut self) -> Ns {
            let (counter, system) = (self.counter as u64, Ns(self.system as u64));
            let now = self.line.at(counter).unwrap_or_else(|| {
                self.line = self.discipline.next(Moment { counter, system, doubt: 100 }, self.line);
                self.line.start
            });
            assert!(now.ns >= self.last, "{now:?} after {:?}", self.last);
            self.last = now.ns;
            now.ns
        }

        /// The relative error of the clock's speed over the next 100 ms.
        fn error(&mut self) -> f64 {
            let before = self.now();
            (0..20).for_each(|_| self.run(5e6));
            (self.now() - before).as_nanos() as f64 / 1e8 - 1.0
        }

        fn apart(&mut self) -> f64 {
            self.now().0 as f64 - self.system
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "70,000 steps of safe arithmetic take Miri minutes")]
    fn a_bad_calibration_is_corrected() {
        for wrong in [0.0, 60e-6, -60e-6, 900e-6, -900e-6, 0.3, -0.3] {
            let mut machine = Machine::new(2.9, wrong);
            (0..10_000).for_each(|_| machine.run(3e6));
            assert!(machine.error().abs() < 1e-6, "{wrong}: rate is off by {}", machine.error());
            assert!(machine.apart().abs() < 1000.0, "{wrong}: {} ns apart", machine.apart());
        }
    }

    #[test]
    fn an_idle_hour_after_a_bad_calibration_is_corrected_at_once() {
        let mut machine = Machine::new(3.1, 80e-6);
        machine.run(3.6e12);
        for _ in 0..3 {
            assert!(machine.apart().abs() < 10.0, "{} ns apart", machine.apart());
            assert!(machine.error().abs() < 1e-6, "{}", machine.error());
        }
    }

    /// Goal: the suspended time does not pass, whenever the clock was read before and after.
    #[test]
    fn a_counter_that_continues_over_a_suspend_changes_neither_time_nor_rate() {
        let mut machine = Machine::new(2.0, 40e-6);
        for asleep in [5e9, 8.0 * 3.6e12, 0.02e9] {
            for before in [1e3, 3e6, 9.9e6, 2e8] {
                (0..50).for_each(|_| machine.run(2e8));
                machine.run(before);
                machine.counter += asleep * machine.cycles_per_ns;
                machine.run(1e3);
                assert!(machine.apart().abs() < 2e4, "{} ns apart", machine.apart());
                assert!(machine.error().abs() < 2.0 * SLEW, "{}", machine.error());
            }
        }
        // Two of them, one after the other, are no measurement of a rate.
        for asleep in [9.9e6, 7e6] {
            (0..50).for_each(|_| machine.run(2e8));
            for _ in 0..2 {
                machine.run(10.1e6 - asleep);
                machine.counter += asleep * machine.cycles_per_ns;
            }
            for _ in 0..100 {
                machine.run(1e6);
                let apart = machine.apart() / SPAN.0 as f64;
                assert!((-0.1..2.0).contains(&apart), "{apart} spans apart");
            }
        }
        // A stand that is too short to be seen makes the clock early by no more than a span.
        for asleep in [1e6, 5e6, 9e6] {
            machine.run(1e9);
            machine.run(1e6);
            machine.counter += asleep * machine.cycles_per_ns;
            (0..10).for_each(|_| {
                machine.run(1e6);
                assert!(machine.apart() < SPAN.0 as f64, "{} ns apart", machine.apart());
            });
        }
    }

    /// Goal: a counter that restarts or stands, and a system clock that goes on, change no time.
    #[test]
    fn a_counter_that_restarts_or_stands_does_not_turn_the_clock_back() {
        let mut machine = Machine::new(2.0, 0.0);
        for to in [Some(1000.0), None, Some(0.0)] {
            (0..50).for_each(|_| machine.run(2e8));
            machine.system += 4e9;
            machine.counter = to.unwrap_or(machine.counter);
            machine.run(2e7);
            assert!(machine.apart().abs() < 1e4, "{} ns apart", machine.apart());
            assert!(machine.error().abs() < 2.0 * SLEW);
        }
    }

    /// Goal: a counter of another rate, as after the migration of a virtual machine, is learned;
    /// the clock is ahead of the system's by no more than a span. One that is not steady is seen.
    #[test]
    #[cfg_attr(miri, ignore = "50,000 steps of safe arithmetic take Miri minutes")]
    fn another_rate_is_learned() {
        for factor in [0.4, 0.9, 1.0 + 3.0 * SLEW, 1.5, 1.9] {
            let mut machine = Machine::new(2.0, 0.0);
            (0..50).for_each(|_| machine.run(2e8));
            machine.cycles_per_ns *= factor;
            for _ in 0..10_000 {
                machine.run(1e6);
                assert!(machine.apart() <= SPAN.0 as f64, "{} ns apart", machine.apart());
            }
            let Discipline { odd_steps, rate, .. } = machine.discipline;
            let error = rate.ns * machine.cycles_per_ns - 1.0;
            assert!(odd_steps == 0 && error.abs() < 1e-5, "{factor}: {odd_steps} odd, {error}");
        }
        let mut machine = Machine::new(2.0, 0.0);
        machine.cycles_per_ns *= 5.0;
        (0..100).for_each(|_| machine.run(1e7));
        assert!(machine.discipline.odd_steps() > 50, "a rate that is not possible");
    }
}
