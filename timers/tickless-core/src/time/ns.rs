//! The type of nanoseconds.
//!
//! A `u64` could be nanoseconds or ticks; mixing them up would fire a timer a million times too
//! early. All arithmetic saturates at [`Ns::NEVER`], the end of the range, and never wraps.

use core::fmt;

/// A point in time or a distance, in nanoseconds. Range: 584 years.
///
/// A function that returns a point in time documents the clock to which it belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ns(pub u64);

impl Ns {
    /// The clock's start.
    pub const ZERO: Ns = Ns(0);
    /// Later than every deadline. An event device, which wakes a CPU or a thread for its timers, is
    /// armed for this time if no timer needs it.
    pub const NEVER: Ns = Ns(u64::MAX);

    /// `us` microseconds, saturating.
    pub const fn from_us(us: u64) -> Ns {
        Ns(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds, saturating.
    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms.saturating_mul(1_000_000))
    }

    /// `secs` seconds, saturating.
    pub const fn from_secs(secs: u64) -> Ns {
        Ns(secs.saturating_mul(1_000_000_000))
    }

    /// A `Duration`, saturating at [`Ns::NEVER`].
    #[inline]
    pub const fn from_duration(duration: core::time::Duration) -> Ns {
        let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos() as u64);
        // A fast path, because every arming converts a duration: one comparison excludes overflow.
        if secs >> 34 == 0 {
            return Ns(secs * 1_000_000_000 + nanos);
        }
        match secs.checked_mul(1_000_000_000) {
            Some(secs) => Ns(secs.saturating_add(nanos)),
            None => Ns::NEVER,
        }
    }

    /// This many nanoseconds as a `Duration`.
    #[inline]
    pub const fn to_duration(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }

    /// `self + delta`, saturating at [`Ns::NEVER`].
    #[inline]
    #[must_use]
    pub const fn after(self, delta: Ns) -> Ns {
        Ns(self.0.saturating_add(delta.0))
    }

    /// The time from `earlier` to `self`; zero if `self` is not later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<core::time::Duration> for Ns {
    type Output = Ns;

    #[inline]
    fn add(self, duration: core::time::Duration) -> Ns {
        self.after(Ns::from_duration(duration))
    }
}

impl core::ops::Sub for Ns {
    type Output = core::time::Duration;

    fn sub(self, earlier: Ns) -> core::time::Duration {
        self.since(earlier).to_duration()
    }
}

impl fmt::Debug for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Ns::NEVER { f.write_str("never") } else { write!(f, "{}ns", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    /// Goal: durations are exact on the fast and the slow path up to the last that fits, and
    /// saturate beyond it.
    #[test]
    fn durations_are_exact_or_saturate() {
        let last = u64::MAX / 1_000_000_000;
        for secs in [0, 1, (1 << 34) - 1, 1 << 34, last - 1, last, last + 1, u64::MAX] {
            for nanos in [0, 1, 709_551_615, 709_551_616, 999_999_999] {
                let exact = u128::from(secs) * 1_000_000_000 + u128::from(nanos);
                let expected = u64::try_from(exact).unwrap_or(u64::MAX);
                assert_eq!(Ns::from_duration(Duration::new(secs, nanos)), Ns(expected));
            }
        }
    }
}
