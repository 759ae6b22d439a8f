//! A future with a deadline.

use super::CoarseSleep;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::time::Ns;

pin_project! {
    /// A future's output, or [`Elapsed`]; from [`deadline`](super::deadline). 88 bytes more than
    /// the future.
    ///
    /// The future is polled first: if it is ready, it has not elapsed.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Deadline<F> {
        #[pin]
        sleep: CoarseSleep,
        #[pin]
        future: F,
    }
}

/// The deadline passed before the future was ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed {
    /// The deadline that passed.
    pub deadline: Ns,
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the work was done")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}

impl<F> Deadline<F> {
    pub(super) fn new(sleep: CoarseSleep, future: F) -> Deadline<F> {
        Deadline { sleep, future }
    }

    /// Pushes the deadline out, or moves it nearer: `after` the present.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn reset(self: Pin<&mut Self>, after: Duration) {
        self.project().sleep.reset(after);
    }
}

impl<F: Future> Future for Deadline<F> {
    type Output = Result<F::Output, Elapsed>;

    #[cfg_attr(debug_assertions, track_caller)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let deadline = this.sleep.deadline();
        this.sleep.poll(cx).map(|()| Err(Elapsed { deadline }))
    }
}

impl<F> fmt::Debug for Deadline<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}
