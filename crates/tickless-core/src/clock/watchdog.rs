//! Tells a disturbed reading from a bad counter (C9).
//!
//! A counter is compared with another one, the reference: how far did each get from one look
//! to the next? Three things must not be held against it:
//! - The reading was *disturbed*: an interrupt or a hypervisor came between the readings of the
//!   two counters. The reference is read before and after, a look that took too long is taken
//!   again, and if that does not help nothing is judged this time.
//! - Nobody *looked for long*, and a narrow counter has wrapped. So a difference counts only up
//!   to whole wraps of either; where the tolerance over so long a time is no smaller than a
//!   wrap, nothing is judged either.
//! - The *reference* is bad. One that stands still or goes back gives itself away; where two
//!   other counters agree with each other and not with it, it is outvoted.
//!
//! Pure, but for [`Look::take`], which reads the two counters that it is given.

use crate::clock::counter::{Counter, Width};
use crate::clock::slope::Slope;
use crate::clock::sources::Fault;
use crate::time::Ns;
use core::time::Duration;

/// What a watchdog lets pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tolerance {
    /// A look that takes longer than this was disturbed.
    pub disturbance: Duration,
    /// How often a disturbed look is taken again.
    pub retries: u32,
    /// Looks nearer to each other than this are not judged.
    pub shortest: Duration,
    /// How far two good counters may part, in parts per million.
    pub ppm: u32,
    /// And how far besides, between any two looks.
    pub slack: Duration,
}

impl Tolerance {
    /// For real machines: 50 µs and 10 tries for a look, 100 ms between looks, 500 ppm (what
    /// the kernel slews its clocks by at most) and 100 µs.
    pub const USUAL: Tolerance = Tolerance {
        disturbance: Duration::from_micros(50),
        retries: 10,
        shortest: Duration::from_millis(100),
        ppm: 500,
        slack: Duration::from_micros(100),
    };

    fn over(&self, time: u64) -> u64 {
        let drift = (u128::from(time) * u128::from(self.ppm) / 1_000_000) as u64;
        drift.saturating_add(Ns::from_duration(self.slack).0)
    }
}

/// Two counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// What the reference stood at.
    pub reference: u64,
    /// What the counter stood at.
    pub count: u64,
}

impl Look {
    /// Reads both counters, several times if need be; `None` if it was disturbed every time.
    pub fn take(
        reference: &impl Counter,
        counter: &impl Counter,
        tolerance: &Tolerance,
    ) -> Option<Look> {
        let scale = Scale::of(reference);
        (0..=tolerance.retries).find_map(|_| {
            let before = reference.read();
            let count = counter.read();
            let took = scale.width.elapsed(before, reference.read());
            let middle = before.wrapping_add(took / 2) & scale.width.mask();
            (scale.slope.ns(took).to_duration() <= tolerance.disturbance)
                .then_some(Look { reference: middle, count })
        })
    }
}

/// How a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// How wide it is.
    pub width: Width,
    /// How fast.
    pub slope: Slope,
}

impl Scale {
    /// A counter's own, by its nominal frequency.
    pub fn of(counter: &impl Counter) -> Scale {
        Scale { width: counter.width(), slope: Slope::of(counter.frequency()) }
    }

    /// The time from one count to another, if there was no wrap but what masking hides.
    fn between(self, from: u64, to: u64) -> Ns {
        self.slope.ns(to.wrapping_sub(from) & self.width.mask())
    }

    fn is_behind(self, from: u64, to: u64) -> bool {
        from != to && self.width.elapsed(from, to) == 0
    }

    /// The time in which it wraps.
    fn wrap(self) -> Ns {
        self.slope.ns(self.width.mask())
    }

    fn reach(self) -> Ns {
        self.slope.ns(self.width.reach())
    }
}

/// What comes out of two looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The two agree.
    Good,
    /// The looks are too near to each other; keep the earlier one.
    TooSoon,
    /// The looks seem to be so far apart that nothing can be said; go on from the later one.
    /// If another counter knows that they are not, the fault stands.
    TooLate(Fault),
    /// The counter is bad.
    Bad(Fault),
    /// The reference is.
    BadReference(Fault),
}

/// Judges a counter by how far it and the reference came between two looks.
pub fn judge(
    from: Look,
    to: Look,
    counter: Scale,
    reference: Scale,
    tolerance: &Tolerance,
) -> Comparison {
    let ours = counter.between(from.count, to.count);
    let theirs = reference.between(from.reference, to.reference);
    let ours_is_behind = counter.is_behind(from.count, to.count);
    if reference.is_behind(from.reference, to.reference)
        && !ours_is_behind
        && ours < reference.reach()
    {
        return Comparison::BadReference(Fault::Backwards);
    }
    if ours_is_behind && theirs < counter.reach() {
        return Comparison::Bad(Fault::Backwards);
    }
    if ours.max(theirs).to_duration() < tolerance.shortest {
        return Comparison::TooSoon;
    }
    if from.reference == to.reference {
        return Comparison::BadReference(Fault::Frozen);
    }
    if from.count == to.count {
        return Comparison::Bad(Fault::Frozen);
    }
    compare(ours.0, theirs.0, counter.wrap().0, reference.wrap().0, tolerance)
}

/// Compares two distances, each known up to whole wraps.
fn compare(
    ours: u64,
    theirs: u64,
    our_wrap: u64,
    their_wrap: u64,
    tolerance: &Tolerance,
) -> Comparison {
    let (longer, wrap) = if ours > theirs { (ours, their_wrap) } else { (theirs, our_wrap) };
    let allowed = tolerance.over(longer);
    let apart = ours.abs_diff(theirs);
    if apart <= allowed {
        return Comparison::Good;
    }
    let by = Duration::from_nanos(apart);
    let fault = if ours > theirs { Fault::Fast(by) } else { Fault::Slow(by) };
    // The shorter of the two may have wrapped: then they are apart by whole wraps.
    let beyond = apart % wrap.max(1);
    let fits_wraps = apart >= wrap / 2 && beyond.min(wrap - beyond) <= allowed;
    if fits_wraps || allowed >= wrap / 4 {
        return Comparison::TooLate(fault);
    }
    Comparison::Bad(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::counter::Hertz;

    const HPET: Scale = Scale { width: Width::bits(32), slope: Slope::of(Hertz::new(14_318_180)) };
    const TSC: Scale = Scale { width: Width::FULL, slope: Slope::of(Hertz::new(2_000_000_000)) };
    const START: Look = Look { reference: 0xffff_0000, count: 77 };

    /// A look that comes so long after the first, by the reference and by the counter.
    fn later(theirs: f64, ours: f64) -> Look {
        let reference = (START.reference as f64 + theirs * 14_318_180.0) as u64 & 0xffff_ffff;
        Look { reference, count: START.count + (ours * 2e9) as u64 }
    }

    fn comparison(theirs: f64, ours: f64) -> Comparison {
        judge(START, later(theirs, ours), TSC, HPET, &Tolerance::USUAL)
    }

    /// Goal: C9: good counters pass, across wraps of the reference and long sleeps.
    #[test]
    fn good_counters_pass() {
        for seconds in [0.2, 0.5, 10.0, 149.0, 299.0] {
            for drift in [-400e-6, 0.0, 400e-6] {
                assert_eq!(
                    comparison(seconds, seconds * (1.0 + drift)),
                    Comparison::Good,
                    "{seconds}"
                );
            }
        }
        assert_eq!(comparison(0.01, 0.01), Comparison::TooSoon);
        for seconds in [300.5, 1000.0, 7200.0, 86_400.0, 1e6] {
            assert!(matches!(comparison(seconds, seconds), Comparison::TooLate(_)), "{seconds}");
        }
    }

    /// Goal: C9: each way of being bad is told, and told from the others.
    #[test]
    fn bad_counters_are_told() {
        assert_eq!(comparison(0.5, 0.0), Comparison::Bad(Fault::Frozen));
        for (theirs, ours) in [(0.5, 0.49), (0.5, 0.1), (140.0, 139.0), (0.5, 0.501)] {
            let told = comparison(theirs, ours);
            let is_slow = ours < theirs;
            let fits = match told {
                Comparison::Bad(Fault::Slow(by) | Fault::Fast(by)) => {
                    (by.as_secs_f64() - (theirs - ours).abs()).abs() < 1e-6
                }
                _ => false,
            };
            assert!(fits, "{theirs} {ours}: {told:?}");
            assert_eq!(is_slow, matches!(told, Comparison::Bad(Fault::Slow(_))));
        }
        // A jump by hours is no long sleep, unless it happens to fit the reference's wraps.
        assert!(matches!(comparison(0.5, 7350.0), Comparison::Bad(Fault::Fast(_))));
        let back = Look { count: START.count - 70, ..later(0.5, 0.0) };
        let told = judge(START, back, TSC, HPET, &Tolerance::USUAL);
        assert_eq!(told, Comparison::Bad(Fault::Backwards));
    }

    /// Goal: C9: a reference that stands still or goes back is not believed.
    #[test]
    fn a_bad_reference_is_told() {
        assert_eq!(comparison(0.0, 0.5), Comparison::BadReference(Fault::Frozen));
        let back = Look { reference: START.reference - 5000, ..later(0.0, 0.5) };
        let told = judge(START, back, TSC, HPET, &Tolerance::USUAL);
        assert_eq!(told, Comparison::BadReference(Fault::Backwards));
    }
}
