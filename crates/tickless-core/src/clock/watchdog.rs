//! Finds bad counters, without blaming a good counter for a disturbed reading.
//!
//! A counter is compared with a reference counter: how far has each advanced between two samples?
//! Three causes of a difference are not faults of the counter:
//! - The sample was *disturbed*: an interrupt or a hypervisor delayed the thread between the
//!   readings of the two counters. The reference is read before and after, and a sample that took
//!   too long is repeated. If every attempt is disturbed, nothing is judged.
//! - The samples are *far apart*, and a narrow counter has wrapped. So differences are compared
//!   modulo whole wraps of either counter. If the tolerance over that time is not smaller than a
//!   wrap, nothing is judged.
//! - The *reference* is bad. A reference that stops or goes back is detected directly. If
//!   two other counters agree with each other and not with the reference, they outvote it.
//!
//! Only [`Sample::take`] reads counters; everything else here is arithmetic.

use crate::clock::counter::{Counter, Width};
use crate::clock::slope::Slope;
use crate::clock::sources::Fault;
use crate::time::Ns;
use core::time::Duration;

/// The tolerances of a watchdog. Start from [`Tolerance::DEFAULT`] and set fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tolerance {
    /// A sample that takes longer than this counts as disturbed: something delayed the thread
    /// between the readings.
    pub disturbance: Duration,
    /// The number of times that a disturbed sample is repeated.
    pub retries: u32,
    /// Samples closer to each other than this are not compared.
    pub shortest: Duration,
    /// The largest relative difference of two good counters, in parts per million.
    pub ppm: u32,
    /// A difference that is allowed in addition to `ppm`, however close the samples are to each
    /// other.
    pub slack: Duration,
}

impl Tolerance {
    /// Tolerances for real machines. A sample may take 50 µs and is repeated up to 10 times;
    /// samples are 100 ms apart or more; counters may differ by 500 ppm (the kernel's bound for
    /// slewing its clocks) plus 100 µs.
    pub const DEFAULT: Tolerance = Tolerance {
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

/// The readings of two counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The reference's reading.
    pub reference: u64,
    /// The counter's reading.
    pub count: u64,
}

impl Sample {
    /// Reads both counters, and reads them again if the sample was disturbed. Returns `None` if
    /// every attempt was disturbed.
    pub fn take(
        reference: &impl Counter,
        counter: &impl Counter,
        tolerance: &Tolerance,
    ) -> Option<Sample> {
        let scale = Scale::of(reference);
        (0..=tolerance.retries).find_map(|_| {
            let before = reference.read();
            let count = counter.read();
            let took = scale.width.elapsed(before, reference.read());
            let middle = before.wrapping_add(took / 2) & scale.width.mask();
            (scale.slope.ns(took).to_duration() <= tolerance.disturbance)
                .then_some(Sample { reference: middle, count })
        })
    }
}

/// The width and frequency of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Its width.
    pub width: Width,
    /// Time per count.
    pub slope: Slope,
}

impl Scale {
    /// Returns a counter's scale at its nominal frequency.
    pub fn of(counter: &impl Counter) -> Scale {
        Scale { width: Width::bits(counter.bits()), slope: Slope::of(counter.hertz()) }
    }

    /// Returns the time from one count to another. Whole wraps in between are not seen.
    fn between(self, from: u64, to: u64) -> Ns {
        self.slope.ns(to.wrapping_sub(from) & self.width.mask())
    }

    fn is_behind(self, from: u64, to: u64) -> bool {
        from != to && self.width.elapsed(from, to) == 0
    }

    fn wrap(self) -> Ns {
        self.slope.ns(self.width.mask())
    }

    fn reach(self) -> Ns {
        self.slope.ns(self.width.reach())
    }
}

/// The result of comparing two samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The counters agree.
    Good,
    /// The samples are too close to each other to be judged; the caller keeps the earlier one.
    TooSoon,
    /// The samples seem to be too far apart to be judged; the caller keeps the later one. If
    /// another counter agrees with the reference, the samples are not too far apart after all, and
    /// this counter has the fault.
    TooLate(Fault),
    /// The counter is bad.
    Bad(Fault),
    /// The reference is bad.
    BadReference(Fault),
}

/// Judges a counter by how far it and the reference advanced between two samples.
pub fn judge(
    from: Sample,
    to: Sample,
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

/// Compares how far two counters advanced, in nanoseconds. If a counter has wrapped, whole wraps
/// are missing in its distance.
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
    // The counter with the shorter distance may have wrapped: then the difference is a number of
    // whole wraps.
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

    const HPET: Scale = Scale { width: Width::bits(32), slope: Slope::of(14_318_180) };
    const TSC: Scale = Scale { width: Width::FULL, slope: Slope::of(2_000_000_000) };
    const START: Sample = Sample { reference: 0xffff_0000, count: 77 };

    /// A second sample: since `START` the reference has counted `theirs` seconds, and the counter
    /// `ours` seconds.
    fn later(theirs: f64, ours: f64) -> Sample {
        let reference = (START.reference as f64 + theirs * 14_318_180.0) as u64 & 0xffff_ffff;
        Sample { reference, count: START.count + (ours * 2e9) as u64 }
    }

    fn comparison(theirs: f64, ours: f64) -> Comparison {
        judge(START, later(theirs, ours), TSC, HPET, &Tolerance::DEFAULT)
    }

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

    #[test]
    fn each_fault_is_reported() {
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
        // A jump ahead by hours is taken for a long sleep only if it is a number of whole wraps of
        // the reference, and this one is not.
        assert!(matches!(comparison(0.5, 7350.0), Comparison::Bad(Fault::Fast(_))));
        let back = Sample { count: START.count - 70, ..later(0.5, 0.0) };
        let told = judge(START, back, TSC, HPET, &Tolerance::DEFAULT);
        assert_eq!(told, Comparison::Bad(Fault::Backwards));
    }

    #[test]
    fn a_bad_reference_is_reported() {
        assert_eq!(comparison(0.0, 0.5), Comparison::BadReference(Fault::Frozen));
        let back = Sample { reference: START.reference - 5000, ..later(0.0, 0.5) };
        let told = judge(START, back, TSC, HPET, &Tolerance::DEFAULT);
        assert_eq!(told, Comparison::BadReference(Fault::Backwards));
    }
}
