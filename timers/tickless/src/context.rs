//! The clock that a caller is on: that of the system, or one that the program moves. The timers of
//! the process run on the system's clock only, so they are refused to callers on another one.

use crate::builder::StartTimersError;
use crate::process;
use crate::timers::Timers;
#[cfg(feature = "tokio-time")]
use crate::tokio_runtime;

impl Timers {
    /// Returns the timers of this process, which [`future`](crate::future) uses too: a base for
    /// each CPU that the process is allowed to use, each with a driver thread once it is used. The
    /// first call starts them, which blocks for about a millisecond; they run until the process
    /// ends. For a separate set, see [`builder`](Timers::builder).
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Thread`] if the system refuses a thread, and
    /// [`OtherClock`](StartTimersError::OtherClock) if the caller is on a clock that the program
    /// moves, which these timers do not follow: in a tokio runtime whose clock is paused (noticed
    /// with the feature `tokio-test-util`), or on a virtual clock that the thread has entered.
    #[track_caller]
    pub fn process() -> Result<Timers, StartTimersError> {
        if is_moved() { Err(StartTimersError::OtherClock) } else { process::start() }
    }

    /// Returns whether these timers run in real time while the program moves the caller's clock.
    #[cfg_attr(feature = "tokio-time", cold)]
    #[inline]
    pub(crate) fn are_on_another_clock(&self) -> bool {
        is_moved() && self.shared.bases.platform().clock.is_real()
    }
}

/// Returns whether the program moves the caller's clock.
#[inline]
pub(crate) fn is_moved() -> bool {
    #[cfg(feature = "tokio-time")]
    return tokio_runtime::is_moved();
    #[cfg(not(feature = "tokio-time"))]
    false
}
