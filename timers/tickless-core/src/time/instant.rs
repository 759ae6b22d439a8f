//! Points in time as the public interfaces take and return them.

use super::Ns;
use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;

/// A point in time on the clock of a set of timers, in whole nanoseconds since that clock's start.
/// Range: 584 years.
///
/// Distances are [`Duration`]s. `+` and `-` with a duration saturate at [`Instant::NEVER`] and
/// [`Instant::ZERO`], where those of `std::time::Instant` panic: a timeout of [`Duration::MAX`]
/// means no timeout. [`checked_add`](Instant::checked_add) and
/// [`checked_sub`](Instant::checked_sub) return `None` instead of saturating.
///
/// Instants of different clocks can be compared, but the result means nothing.
///
/// ```
/// # use tickless_core::time::Instant;
/// use core::time::Duration;
///
/// let start = Instant::from_millis(5);
/// let end = start + Duration::from_secs(2);
/// assert_eq!(end - start, Duration::from_secs(2));
/// assert_eq!(start.checked_duration_since(end), None);
/// assert_eq!(end + Duration::MAX, Instant::NEVER);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Ns);

impl Instant {
    /// The clock's start, and the earliest instant.
    pub const ZERO: Instant = Instant(Ns::ZERO);
    /// The latest instant. A timer that is armed for it never fires.
    pub const NEVER: Instant = Instant(Ns::NEVER);

    /// The instant this many nanoseconds after the clock's start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(Ns(nanos))
    }

    /// The instant this many microseconds after the clock's start; saturates at
    /// [`Instant::NEVER`].
    #[inline]
    pub const fn from_micros(micros: u64) -> Instant {
        Instant(Ns::from_us(micros))
    }

    /// The instant this many milliseconds after the clock's start; saturates at
    /// [`Instant::NEVER`].
    #[inline]
    pub const fn from_millis(millis: u64) -> Instant {
        Instant(Ns::from_ms(millis))
    }

    /// The instant this many seconds after the clock's start; saturates at [`Instant::NEVER`].
    #[inline]
    pub const fn from_secs(secs: u64) -> Instant {
        Instant(Ns::from_secs(secs))
    }

    /// Nanoseconds since the clock's start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.0
    }

    /// The instant as the core's own type of time.
    #[doc(hidden)]
    #[inline]
    pub const fn to_ns(self) -> Ns {
        self.0
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    #[inline]
    pub const fn duration_since(self, earlier: Instant) -> Duration {
        self.0.since(earlier.0).to_duration()
    }

    /// The time from `earlier` to this instant; `None` if `earlier` is later.
    pub const fn checked_duration_since(self, earlier: Instant) -> Option<Duration> {
        match self.0.0.checked_sub(earlier.0.0) {
            Some(nanos) => Some(Duration::from_nanos(nanos)),
            None => None,
        }
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later. Equal to
    /// [`duration_since`](Self::duration_since), with a name that states the saturation.
    #[inline]
    pub const fn saturating_duration_since(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// `self + duration`; `None` if that is [`Instant::NEVER`] or beyond.
    pub fn checked_add(self, duration: Duration) -> Option<Instant> {
        let sum = u128::from(self.0.0) + duration.as_nanos();
        u64::try_from(sum).ok().map(Instant::from_nanos).filter(|&sum| sum != Instant::NEVER)
    }

    /// `self - duration`; `None` if that is before the clock's start.
    pub fn checked_sub(self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.0.checked_sub(nanos).map(Instant::from_nanos)
    }
}

impl From<Ns> for Instant {
    #[inline]
    fn from(ns: Ns) -> Instant {
        Instant(ns)
    }
}

/// Saturates at [`Instant::NEVER`].
impl Add<Duration> for Instant {
    type Output = Instant;

    #[inline]
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Saturates at [`Instant::ZERO`].
impl Sub<Duration> for Instant {
    type Output = Instant;

    #[inline]
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.since(Ns::from_duration(duration)))
    }
}

impl SubAssign<Duration> for Instant {
    #[inline]
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// `a - b` is the time from `b` to `a`; zero if `b` is later, as with `std::time::Instant`.
impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

/// Nanoseconds since the clock's start, or `never`.
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_arithmetic_fails_where_operators_saturate() {
        let last = Instant::from_nanos(u64::MAX - 1);
        let one = Duration::from_nanos(1);
        for at in [Instant::ZERO, Instant::from_nanos(1), Instant::from_secs(7), last] {
            for by in [Duration::ZERO, one, Duration::from_secs(8), Duration::MAX] {
                let (sum, rest) = (at.checked_add(by), at.checked_sub(by));
                assert_eq!(sum.unwrap_or(Instant::NEVER), at + by);
                assert_eq!(rest.unwrap_or(Instant::ZERO), at - by);
                assert_eq!(
                    sum.is_none(),
                    u128::from(at.as_nanos()) + by.as_nanos() >= u64::MAX.into()
                );
                assert_eq!(rest.is_none(), by.as_nanos() > at.as_nanos().into());
                assert_eq!(sum.map(|sum| (sum - at, at - sum)), sum.map(|_| (by, Duration::ZERO)));
            }
        }
        assert_eq!(last.checked_duration_since(Instant::NEVER), None);
        assert_eq!(Instant::NEVER.checked_duration_since(last), Some(one));
        assert_eq!(last.saturating_duration_since(Instant::NEVER), Duration::ZERO);
    }
}
