//! A sleep with the names of `tokio::time::Sleep`.

use super::{Instant, clock};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pin_project! {
    /// Completes when its deadline has passed; from [`sleep`] and [`sleep_until`]. Never early, and
    /// late by the time it takes to wake a thread plus a thousandth of its duration, at most 50 ms.
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
    /// The earliest moment at which it completes.
    pub fn deadline(&self) -> Instant {
        Instant(self.inner.deadline())
    }

    /// Returns `true` if its deadline has passed.
    pub fn is_elapsed(&self) -> bool {
        self.inner.is_elapsed()
    }

    /// Sets another deadline, whether it has completed or not, on the clock that it was made on.
    /// The task that polled it last is woken for the new one.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.project().inner.reset_at(deadline.0);
    }

    /// The present on its own clock.
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
