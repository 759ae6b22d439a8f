//! The counterpart of `tokio::time::Timeout`.

use super::error::Elapsed;
use super::{Instant, Sleep, sleep, sleep_until};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pin_project! {
    /// Yields a future's output, or [`Elapsed`] if a deadline passes first; from [`timeout`] and
    /// [`timeout_at`].
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        #[pin]
        sleep: Sleep,
    }
}

/// Yields the output of `future`, or [`Elapsed`] if it is not ready before `duration` has passed.
/// The future is polled before the clock is read, so a future that is ready never elapses.
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), sleep: sleep(duration) }
}

/// Like [`timeout`], with the time `deadline` instead of a duration.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), sleep: sleep_until(deadline) }
}

impl<T> Timeout<T> {
    /// Returns a reference to the inner future.
    // tidy: allow(get-name): tokio's name
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the inner future.
    // tidy: allow(get-name): tokio's name
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns the inner future.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.value.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll(cx).map(|()| Err(Elapsed(())))
    }
}
