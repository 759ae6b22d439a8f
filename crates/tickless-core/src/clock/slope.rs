//! How many nanoseconds a count is worth: fixed point with 32 bits behind the point.
//!
//! The product of a count and a slope has 128 bits, so nothing overflows on the way and no
//! shift has to be chosen for the longest idle; on 64-bit CPUs it is one instruction. What the
//! slope itself is off by, at most half of 2^-32 ns per count, comes to less than a nanosecond
//! in 2^32 counts: 0.4 parts in 10^9 at 3 GHz, a thousandth of what an oscillator is off by. A
//! counter that divides 10^9 Hz is exact.
//!
//! What conversion drops behind the point is not lost either: a [`Point`] carries it on to the
//! next segment (C7).

use crate::clock::counter::Hertz;
use crate::time::Ns;

/// Bits behind the point.
pub const FRACTION_BITS: u32 = 32;

/// Nanoseconds per count, in units of 2^-32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slope(pub u64);

/// A moment that is known more finely than to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Point {
    /// Whole nanoseconds.
    pub ns: Ns,
    /// What comes on top, in units of 2^-32 ns.
    pub fraction: u32,
}

impl Point {
    /// A whole nanosecond.
    pub const fn at(ns: Ns) -> Point {
        Point { ns, fraction: 0 }
    }
}

impl Slope {
    /// One count is one nanosecond.
    pub const ONE: Slope = Slope(1 << FRACTION_BITS);

    /// The slope of a counter with this frequency, to the nearest.
    pub const fn of(frequency: Hertz) -> Slope {
        let hertz = frequency.counts_per_s() as u128;
        let fine = ((1_000_000_000u128 << FRACTION_BITS) + hertz / 2) / hertz;
        Slope(fine as u64)
    }

    /// Where one gets from `start` in so many counts. Wraps beyond 584 years.
    #[inline]
    pub const fn ahead(self, start: Point, counts: u64) -> Point {
        let fine = counts as u128 * self.0 as u128 + start.fraction as u128;
        let ns = start.ns.0.wrapping_add((fine >> FRACTION_BITS) as u64);
        Point { ns: Ns(ns), fraction: fine as u32 }
    }

    /// How many nanoseconds so many counts are, rounded down, saturating.
    pub const fn ns(self, counts: u64) -> Ns {
        let ns = (counts as u128 * self.0 as u128) >> FRACTION_BITS;
        if ns > u64::MAX as u128 { Ns::NEVER } else { Ns(ns as u64) }
    }

    /// How many counts it takes until so much time is over, rounded up, saturating. Takes a
    /// division.
    pub const fn counts(self, time: Ns) -> u64 {
        if self.0 == 0 {
            return u64::MAX;
        }
        let counts = ((time.0 as u128) << FRACTION_BITS).div_ceil(self.0 as u128);
        if counts > u64::MAX as u128 { u64::MAX } else { counts as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: C7: over the longest idle of a 32-bit counter the conversion is off by less than
    /// a nanosecond, whatever its frequency.
    #[test]
    fn half_a_wrap_of_a_narrow_counter_is_exact_to_the_nanosecond() {
        for hertz in [1_193_182, 3_579_545, 14_318_180, 24_000_000, 25_000_000, 999_999_937] {
            let slope = Slope::of(Hertz::new(hertz));
            for counts in [1u64, 1000, 1 << 24, (1 << 31) - 1] {
                let exact = u128::from(counts) * 1_000_000_000 / u128::from(hertz);
                let off = i128::from(slope.ns(counts).0) - exact as i128;
                assert!(off.abs() <= 1, "{hertz} Hz, {counts} counts: {off} ns off");
            }
        }
    }

    /// Goal: a counter whose period is a whole number of nanoseconds is exact for centuries.
    #[test]
    fn divisors_of_a_gigahertz_are_exact() {
        for ns in [1, 2, 8, 10, 100, 1_000_000] {
            let slope = Slope::of(Hertz::new(1_000_000_000 / ns));
            let counts = (1u64 << 62) / ns + 7;
            assert_eq!(slope.ns(counts), Ns(counts * ns));
            assert_eq!(slope.counts(Ns(counts * ns)), counts);
        }
    }

    /// Goal: C7: a long way in many steps ends where one step ends.
    #[test]
    fn steps_lose_nothing() {
        let slope = Slope::of(Hertz::new(2_994_375_731));
        let mut point = Point::at(Ns(17));
        let (mut total, mut step) = (0u64, 12_345u64);
        for _ in 0..100_000 {
            point = slope.ahead(point, step);
            total += step;
            step = step.wrapping_mul(6_364_136_223_846_793_005) >> 40;
        }
        assert_eq!(point, slope.ahead(Point::at(Ns(17)), total));
    }

    #[test]
    fn a_time_is_over_after_its_counts() {
        for hertz in [3, 1_193_182, 14_318_180, 2_994_375_731, 10_000_000_000] {
            let slope = Slope::of(Hertz::new(hertz));
            for time in [Ns(0), Ns(1), Ns(999), Ns::from_secs(1), Ns::from_secs(86_400)] {
                let counts = slope.counts(time);
                assert!(slope.ns(counts) >= time);
                assert!(counts == 0 || slope.ns(counts - 1) < time, "{hertz} {time:?}");
            }
        }
        assert_eq!(Slope(0).counts(Ns(1)), u64::MAX);
    }
}
