//! The counterpart of `tokio::time::Instant`.

use crate::{time, tokio_runtime};
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A point in time on the clock of this module's timers. Range: 584 years from the system's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(pub(super) time::Instant);

impl Instant {
    /// Returns the current time on the virtual clock that this thread has
    /// [entered](crate::VirtualTime::enter), or else on the clock of the runtime that it is in, or
    /// else on that of the process's timers.
    pub fn now() -> Instant {
        Instant(tokio_runtime::now())
    }

    /// Converts from the standard library's `Instant`.
    pub fn from_std(std: std::time::Instant) -> Instant {
        Instant(time::from_std(std))
    }

    /// Converts to the standard library's `Instant`.
    pub fn into_std(self) -> std::time::Instant {
        time::to_std(self.0)
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.0 - earlier.0
    }

    /// Returns the time from `earlier` to `self`; `None` if `earlier` is later.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// Returns the time from `self` to now; zero if `self` is in the future.
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// Returns `self + duration`; `None` if that is out of range.
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(duration).map(Instant)
    }

    /// Returns `self - duration`; `None` if that is out of range.
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }
}

/// Converts from the time of [`Timers::now`](crate::Timers::now).
impl From<time::Instant> for Instant {
    fn from(instant: time::Instant) -> Instant {
        Instant(instant)
    }
}

/// Converts to the type that [`HrTimer::start_at`](crate::HrTimer::start_at) and similar methods
/// take.
impl From<Instant> for time::Instant {
    fn from(instant: Instant) -> time::Instant {
        instant.0
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Instant {
        Instant::from_std(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> std::time::Instant {
        instant.into_std()
    }
}

/// Converts from tokio's own instants, those of a paused clock included.
impl From<tokio::time::Instant> for Instant {
    fn from(tokio: tokio::time::Instant) -> Instant {
        Instant::from_std(tokio.into_std())
    }
}

impl From<Instant> for tokio::time::Instant {
    fn from(instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(instant.into_std())
    }
}

/// If the sum is out of range, the result is the end of time, which timers never reach.
impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

/// If the difference is out of range, the result is the time at which the system started.
impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}
