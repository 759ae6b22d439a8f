//! Futures that complete at a deadline.

use crate::platform::host::WheelLink;
use crate::timer::entry::Entry;
use crate::timer::shared::Handle;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::link::QueueLink;
use tickless_core::time::{Instant, Ns};

pin_project! {
    /// A future that completes when its deadline has passed; from [`sleep`](super::sleep) and
    /// [`sleep_until`](super::sleep_until). 96 bytes. Never early; late by at most its slack and
    /// two thread wakeups. Moving the deadline to a later time again and again seldom takes a lock.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Sleep {
        #[pin]
        pub(crate) entry: Entry<QueueLink>,
    }
}

pin_project! {
    /// A future that completes when its deadline has passed, or later by up to 13 % of the time to
    /// sleep; from [`coarse_sleep`](super::coarse_sleep). 88 bytes. Moving the deadline to a later
    /// time takes one compare-and-swap.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct CoarseSleep {
        #[pin]
        pub(super) entry: Entry<WheelLink>,
    }
}

macro_rules! sleep {
    ($type:ident) => {
        impl $type {
            /// Returns the deadline of this sleep, which does not complete before it.
            pub fn deadline(&self) -> Instant {
                self.entry.deadline().into()
            }

            /// Returns `true` if the sleep's timer has fired. The task is perhaps not woken yet.
            pub fn is_elapsed(&self) -> bool {
                self.entry.has_fired()
            }

            /// Sets another deadline, whether or not the sleep has completed. The task that polled
            /// it last is woken then, unless it was woken since that poll. Allocates nothing.
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reset_at(self: Pin<&mut Self>, deadline: Instant) {
                let now = self.now();
                self.project().entry.reset(deadline.to_ns(), now.to_ns());
            }

            /// Like [`reset_at`](Self::reset_at), to `after` from now.
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reset(self: Pin<&mut Self>, after: Duration) {
                let now = self.now();
                self.project().entry.reset((now + after).to_ns(), now.to_ns());
            }

            /// Like [`reset`](Self::reset), but counted from `now`, which the caller has just read
            /// with [`Timers::now`](crate::Timers::now). This saves a clock read, which is two
            /// fifths of the instructions that moving a coarse sleep to a later time takes.
            #[inline]
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reset_from(self: Pin<&mut Self>, now: Instant, after: Duration) {
                self.project().entry.reset((now + after).to_ns(), now.to_ns());
            }

            /// Returns the current time on the clock that the deadline of this sleep is on.
            #[inline]
            pub fn now(&self) -> Instant {
                self.entry.shared().map_or_else(super::now, |shared| shared.now().into())
            }
        }

        impl Future for $type {
            type Output = ();

            #[cfg_attr(debug_assertions, track_caller)]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                self.project().entry.poll(cx)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type))
                    .field("deadline", &self.deadline())
                    .field("elapsed", &self.is_elapsed())
                    .finish()
            }
        }
    };
}

sleep!(Sleep);
sleep!(CoarseSleep);

impl Sleep {
    pub(crate) fn new(timers: Option<&Handle>, deadline: Instant, slack: Ns) -> Sleep {
        Sleep { entry: Entry::new(timers, deadline.to_ns(), slack) }
    }

    /// Lets the sleep be late by up to `slack`, to share a wakeup with other timers. The slack is
    /// rounded down to a multiple of 1.024 µs, and is at most 36 minutes. It also applies after a
    /// reset; the default slack is that of the time from the reset to the new deadline.
    pub fn slack(self, slack: Duration) -> Sleep {
        self.set_slack(slack);
        self
    }

    pub(super) fn set_slack(&self, slack: Duration) {
        self.entry.set_slack(Ns::from_duration(slack));
    }
}

impl CoarseSleep {
    pub(super) fn new(timers: Option<&Handle>, deadline: Instant) -> CoarseSleep {
        CoarseSleep { entry: Entry::new(timers, deadline.to_ns(), Ns::ZERO) }
    }
}
