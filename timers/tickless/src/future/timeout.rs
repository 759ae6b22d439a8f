//! Futures with a deadline.

use super::source::{call_time, place};
use super::{CoarseSleep, Sleep};
use crate::platform::coop;
use crate::platform::host::WheelLink;
use crate::timer::entry::Entry;
use pin_project_lite::pin_project;
use std::fmt;
use std::num::NonZero;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::link::QueueLink;
use tickless_core::time::{Instant, Ns};

pin_project! {
    /// A future that yields another future's output, or [`Elapsed`] if a deadline passes first;
    /// from [`timeout`](super::timeout) and [`coarse_timeout`](super::coarse_timeout). 104 bytes
    /// larger than the inner future, or 96 with a [`CoarseSleep`]. The inner future is polled
    /// before the clock is read, so a future that is ready never elapses.
    ///
    /// Inside a [`deadline_scope`](super::deadline_scope) with an earlier deadline a `Timeout` arms
    /// no timer of its own, and ends with the scope's deadline.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Timeout<F, S = Sleep> {
        #[pin]
        pub(super) sleep: S,
        // In nanoseconds, for which the timeout was made. Its sleep has no timers yet.
        unplaced: Option<NonZero<u64>>,
        #[pin]
        pub(crate) future: F,
    }
}

/// The deadline passed before the future was ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Elapsed {
    /// The deadline that passed.
    pub deadline: Instant,
    /// Whether the deadline was an ambient one, of a [`deadline_scope`](super::deadline_scope)
    /// around the future, and not the one that this future was given itself.
    pub is_ambient: bool,
}

impl Elapsed {
    /// Makes the error of a future with the deadline `own`. `ambient` is the deadline of the scope
    /// around the future, if that deadline ended it.
    pub(super) fn new(own: Instant, ambient: Option<Ns>) -> Elapsed {
        let deadline = ambient.map_or(own, Instant::from);
        Elapsed { deadline, is_ambient: ambient.is_some() }
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = if self.is_ambient { "ambient deadline" } else { "deadline" };
        write!(f, "the {which} passed before the work was done")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}

impl<F, S> Timeout<F, S> {
    pub(crate) fn new(sleep: S, future: F) -> Self {
        Timeout { sleep, unplaced: None, future }
    }
}

macro_rules! timeout {
    ($sleep:ident, $link:ident) => {
        impl<F> Timeout<F, $sleep> {
            /// Makes a timeout that counts from now. Its timers are chosen when its future has to
            /// wait. Where the program may move the clock, `make` chooses them now.
            #[inline]
            pub(crate) fn after(after: Duration, future: F, make: fn(Duration) -> $sleep) -> Self {
                let unplaced = NonZero::new(Ns::from_duration(after).0);
                let Some(now) = call_time().filter(|_| unplaced.is_some()) else {
                    return Timeout::new(make(after), future);
                };
                let entry = Entry::new(None, (now + after).to_ns(), Ns::ZERO);
                Timeout { sleep: $sleep { entry }, unplaced, future }
            }

            /// Sets the deadline to `after` from now, whether later or earlier than before. Inside
            /// a deadline scope, poll the timeout afterwards, to let it arm its timer.
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reset(self: Pin<&mut Self>, after: Duration) {
                let mut this = self.project();
                if let Some(unplaced) = this.unplaced.take() {
                    place(this.sleep.as_mut().project().entry, Ns(unplaced.get()));
                }
                this.sleep.reset(after);
            }
        }

        impl<F: Future> Timeout<F, $sleep> {
            /// Polls the future first. If it is pending, and the timers were not chosen yet, calls
            /// `place` to choose them.
            #[cfg_attr(debug_assertions, track_caller)]
            #[inline]
            pub(crate) fn poll_with(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                place: impl FnOnce(Pin<&mut Entry<$link>>, Ns),
            ) -> Poll<Result<F::Output, Elapsed>> {
                let this = self.project();
                let before = coop::left();
                if let Poll::Ready(output) = this.future.poll(cx) {
                    return Poll::Ready(Ok(output));
                }
                let mut entry = this.sleep.project().entry;
                if let Some(unplaced) = this.unplaced.take() {
                    place(entry.as_mut(), Ns(unplaced.get()));
                }
                let deadline = entry.deadline().into();
                let mut elapsed = entry.as_mut().poll_in_scope(cx);
                if elapsed.is_pending() && coop::is_used_up_since(before) && entry.has_fired() {
                    elapsed = Poll::Ready(None);
                }
                elapsed.map(|ambient| Err(Elapsed::new(deadline, ambient)))
            }
        }

        impl<F: Future> Future for Timeout<F, $sleep> {
            type Output = Result<F::Output, Elapsed>;

            #[cfg_attr(debug_assertions, track_caller)]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                self.poll_with(cx, place)
            }
        }
    };
}

timeout!(Sleep, QueueLink);
timeout!(CoarseSleep, WheelLink);

impl<F, S: fmt::Debug> fmt::Debug for Timeout<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}
