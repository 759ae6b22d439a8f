//! Futures with a deadline.

use super::{CoarseSleep, Sleep};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::time::Instant;

pin_project! {
    /// Yields a future's output, or [`Elapsed`]; from [`timeout`](super::timeout). 96 bytes more
    /// than the future.
    ///
    /// The future is polled before the clock is read, so a future that is ready never elapses.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Timeout<F> {
        #[pin]
        sleep: Sleep,
        #[pin]
        future: F,
    }
}

pin_project! {
    /// Yields a future's output, or [`Elapsed`], which is up to 13 % late; from
    /// [`coarse_timeout`](super::coarse_timeout). 88 bytes more than the future.
    ///
    /// The future is polled before the clock is read, so a future that is ready never elapses.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct CoarseTimeout<F> {
        #[pin]
        sleep: CoarseSleep,
        #[pin]
        future: F,
    }
}

/// The deadline passed before the future was ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Elapsed {
    /// The deadline that passed.
    pub deadline: Instant,
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

macro_rules! timeout {
    ($type:ident, $sleep:ident) => {
        impl<F> $type<F> {
            pub(super) fn new(sleep: $sleep, future: F) -> $type<F> {
                $type { sleep, future }
            }

            /// Sets the deadline to `after` from now, whether later or earlier than before.
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reset(self: Pin<&mut Self>, after: Duration) {
                self.project().sleep.reset(after);
            }
        }

        impl<F: Future> Future for $type<F> {
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

        impl<F> fmt::Debug for $type<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type))
                    .field("sleep", &self.sleep)
                    .finish_non_exhaustive()
            }
        }
    };
}

timeout!(Timeout, Sleep);
timeout!(CoarseTimeout, CoarseSleep);
