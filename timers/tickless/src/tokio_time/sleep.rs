//! The counterpart of `tokio::time::Sleep`.

use super::Instant;
use crate::time;
use crate::tokio_runtime::{Current, END, current};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::time::Ns;

pin_project! {
    /// A future that completes when its deadline has passed; from [`sleep`] and [`sleep_until`].
    /// Late by its [slack](Sleep::slack) and the time to wake a worker.
    ///
    /// Never early, except that a sleep which outlives its runtime completes at once, as one of
    /// tokio's does.
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct Sleep {
        #[pin]
        pub(super) inner: crate::future::Sleep,
    }
}

/// Waits until `duration` has passed. Works in any runtime and outside of one.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let timers = current();
    let deadline = timers.now() + duration;
    Sleep::new(&timers, deadline, duration)
}

/// Waits until `deadline`.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    let timers = current();
    let duration = deadline.0 - timers.now();
    Sleep::new(&timers, deadline.0, duration)
}

impl Sleep {
    pub(super) fn new(timers: &Current, deadline: time::Instant, duration: Duration) -> Sleep {
        let slack = timers.slack(Ns::from_duration(duration));
        Sleep { inner: crate::future::Sleep::new(timers.handle(), deadline, slack) }
    }

    /// Lets the sleep be late by up to `slack`, to share a wakeup with other timers; zero for an
    /// exact sleep. Tokio has no such method.
    ///
    /// The default inside a runtime is a sixteenth of the duration, at most 1 ms, which is the
    /// resolution of tokio's timers. From 1 s on, and outside of a runtime, it is a thousandth of
    /// the duration, at most 50 ms. It is zero on a paused or virtual clock.
    pub fn slack(self, slack: Duration) -> Sleep {
        Sleep { inner: self.inner.slack(slack) }
    }

    /// Returns the deadline of this sleep, which does not complete before it.
    pub fn deadline(&self) -> Instant {
        Instant(self.inner.deadline())
    }

    /// Returns `true` if the sleep's timer has fired. Perhaps the task has not been woken yet.
    pub fn is_elapsed(&self) -> bool {
        self.inner.is_elapsed()
    }

    /// Sets another deadline, whether or not the sleep has completed, on the clock on which the
    /// sleep was created. The task that polled it last is woken at the new deadline.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.project().inner.reset_at(deadline.0);
    }

    /// Returns whether the sleep belongs to a runtime that has ended.
    pub(super) fn runtime_has_ended(&self) -> bool {
        self.now().0.to_ns() == END
    }

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
