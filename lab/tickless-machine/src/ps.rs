//! Picoseconds: the machine's own unit of time.
//!
//! A cache hit takes 1.3 ns and a request in a queue 3.5 ns, so rounding to ns would cause errors
//! of 10 to 30 %. The range is still large enough: the engine can simulate 10 hours with 512 CPUs.

use std::ops::{Add, AddAssign, Sub};
use tickless_core::time::Ns;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Hash)]
pub struct Ps(pub u64);

impl Ps {
    pub const ZERO: Ps = Ps(0);
    pub const NEVER: Ps = Ps(u64::MAX);

    /// Converts nanoseconds. Times beyond the range become [`Ps::NEVER`].
    pub const fn from_ns(ns: Ns) -> Ps {
        match ns.0.checked_mul(1000) {
            Some(ps) => Ps(ps),
            None => Ps::NEVER,
        }
    }

    /// Converts fractional nanoseconds to the nearest picosecond. Negative ones become zero.
    pub fn from_ns_f64(ns: f64) -> Ps {
        Ps((ns * 1000.0).round() as u64)
    }

    /// Converts to whole nanoseconds, rounded down, as a clock that counts nanoseconds does.
    pub const fn to_ns(self) -> Ns {
        if self.0 == u64::MAX { Ns::NEVER } else { Ns(self.0 / 1000) }
    }

    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    #[must_use]
    pub fn scaled(self, factor: f64) -> Ps {
        Ps((self.0 as f64 * factor).round() as u64)
    }

    /// The time from `earlier` to `self`; zero if `self` is not later.
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
