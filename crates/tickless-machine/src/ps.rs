//! Picoseconds: the machine's own unit of time.
//!
//! A cache hit takes 1.3 ns and a queue's slot 3.5; rounding either to a nanosecond would be
//! 10 to 30 % of it. The engine's order leaves 10 hours of simulated time at 512 CPUs.

use std::ops::{Add, AddAssign, Sub};
use tickless_core::time::Ns;

/// A point in simulated time or a distance, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Hash)]
pub struct Ps(pub u64);

impl Ps {
    /// The beginning.
    pub const ZERO: Ps = Ps(0);
    /// Later than everything.
    pub const NEVER: Ps = Ps(u64::MAX);

    /// `ns` nanoseconds; what is farther than the range goes is [`Ps::NEVER`].
    pub const fn from_ns(ns: Ns) -> Ps {
        match ns.0.checked_mul(1000) {
            Some(ps) => Ps(ps),
            None => Ps::NEVER,
        }
    }

    /// A fractional number of nanoseconds, rounded to the nearest picosecond. Negative is zero.
    pub fn from_ns_f64(ns: f64) -> Ps {
        Ps((ns * 1000.0).round() as u64)
    }

    /// Whole nanoseconds, rounded down: a clock shows what has passed.
    pub const fn to_ns(self) -> Ns {
        if self.0 == u64::MAX { Ns::NEVER } else { Ns(self.0 / 1000) }
    }

    /// As a fractional number of nanoseconds.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// This many times as long.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Ps {
        Ps((self.0 as f64 * factor).round() as u64)
    }

    /// How far `self` lies after `earlier`; zero when it does not.
    #[must_use]
    pub const fn since(self, earlier: Ps) -> Ps {
        Ps(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ps {
    type Output = Ps;

    #[inline]
    fn add(self, other: Ps) -> Ps {
        Ps(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Ps {
    #[inline]
    fn add_assign(&mut self, other: Ps) {
        *self = *self + other;
    }
}

impl Sub for Ps {
    type Output = Ps;

    #[inline]
    fn sub(self, other: Ps) -> Ps {
        self.since(other)
    }
}
