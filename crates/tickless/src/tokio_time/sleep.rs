//! The counterpart of `tokio::time::Sleep`.

use super::{Instant, clock};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pin_project! {
    /// Completes when its deadline has passed; from [`sleep`] and [`sleep_until`]. Never early.
    /// Late by the time to wake two threads, plus its slack: up to a thousandth of its duration, at
    /// most 50 ms.
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct Sleep {
        #[pin]
        inner: crate::future::Sleep,
    }
}

/// Waits until `duration` has passed. Works in any runtime and outside of one.
pub fn sleep(duration: Duration) -> Sleep {
    let clock = clock::current();
    Sleep { inner: clock.sleep_until(clock.now() + duration) }
}

/// Waits until `deadline`.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { inner: clock::current().sleep_until(deadline.0) }
}

impl Sleep {
    /// Returns its deadline, before which it does not complete.
    pub fn deadline(&self) -> Instant {
        Instant(self.inner.deadline())
    }

    /// Returns `true` if its timer has fired. The task may not have been woken yet.
    pub fn is_elapsed(&self) -> bool {
        self.inner.is_elapsed()
    }

    /// Sets another deadline, whether or not it has completed, on the clock on which it was
    /// created. The task that polled it last is woken at the new deadline.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.project().inner.reset_at(deadline.0);
    }

    /// Returns the current time on its clock.
    pub(super) fn now(&self) -> Instant {
        Instant(self.inner.now())
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll(cx)
    }
}
