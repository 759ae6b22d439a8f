//! The counterpart of `tokio::time::Timeout`.

use super::error::Elapsed;
use super::{Instant, sleep, sleep_until};
use crate::future;
use crate::timer::entry::Entry;
use crate::tokio_runtime::checked;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::link::QueueLink;
use tickless_core::time::Ns;

pin_project! {
    /// A future that yields another one's output, or [`Elapsed`] if a deadline passes first; from
    /// [`timeout`] and [`timeout_at`].
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        inner: future::Timeout<T>,
    }
}

/// Yields the output of `future`, or [`Elapsed`] if it is not ready before `duration` has passed.
/// The future is polled before the clock is read, so a future that is ready never elapses.
///
/// Inside a [`deadline_scope`](crate::future::deadline_scope) with an earlier deadline, as from
/// `timers().deadline_scope`, the timeout ends then. Tokio's error type does not show that.
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    let inner = |duration| sleep(duration).inner;
    Timeout { inner: future::Timeout::<_>::after(duration, future.into_future(), inner) }
}

/// Like [`timeout`], with the time `deadline` instead of a duration.
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    let future = future.into_future();
    Timeout { inner: future::Timeout::new(sleep_until(deadline).inner, future) }
}

impl<T> Timeout<T> {
    /// Returns a reference to the inner future.
    // tidy: allow(get-name): tokio's name
    pub fn get_ref(&self) -> &T {
        &self.inner.future
    }

    /// Returns a mutable reference to the inner future.
    // tidy: allow(get-name): tokio's name
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner.future
    }

    /// Returns the inner future.
    pub fn into_inner(self) -> T {
        self.inner.future
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().inner.poll_with(cx, place).map_err(|_| Elapsed(()))
    }
}

/// As [`future::timeout`] does, but chooses the timers of the runtime.
#[inline(never)]
fn place(entry: Pin<&mut Entry<QueueLink>>, after: Ns) {
    let timers = checked();
    entry.place(timers.handle(), after, timers.slack(after));
}
