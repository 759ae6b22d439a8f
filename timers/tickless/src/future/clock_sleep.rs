//! Futures with deadlines on clocks that can be set, or that advance during a suspend.

use super::{Elapsed, Timeout};
use crate::clock_timer::{ClockFired, ClockTimer};
use crate::platform::coop;
use crate::platform::fork::OfProcess;
use crate::platform::locked::locked;
use crate::platform::system_clock::system_time;
use crate::platform::time_base::TimeBase;
use crate::timers::Timers;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickless_core::time::Instant;

/// A future that completes at a deadline on a chosen clock; from
/// [`clock_sleep`](super::clock_sleep) and [`clock_sleep_until`](super::clock_sleep_until). Never
/// early on that clock, and late by two thread wakeups, also when the clock is set. Contains a
/// [`ClockTimer`](crate::clock::ClockTimer), with its cost: making one allocates about six times.
///
/// Armed from its creation, whether or not it is polled.
#[must_use = "futures do nothing unless they are awaited"]
pub struct ClockSleep {
    base: TimeBase,
    deadline: Instant,
    /// `None` if the system refused driver threads: polls compare the deadline with the clock.
    timer: Option<ClockTimer>,
    waits: Waits,
}

/// What the task and the timer's callback share.
type Waits = Arc<OfProcess<Mutex<Waiter>>>;

#[derive(Debug, Default)]
struct Waiter {
    has_fired: bool,
    waker: Option<Waker>,
}

/// When a sleep ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    After(Duration),
    At(Instant),
}

impl ClockSleep {
    pub(super) fn new(timers: Option<&Timers>, base: TimeBase, until: Until) -> ClockSleep {
        let waits: Waits = Arc::new(OfProcess::new(Mutex::default()));
        let shared = Arc::clone(&waits);
        let fire = move |fired: &mut ClockFired<'_>| {
            let mut state = locked(&shared);
            state.has_fired = true;
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                fired.wake_later(waker);
            }
        };
        let timer = timers.map(|timers| timers.clock_timer(base, fire));
        let timer = timer.map(|timer| timer.labelled("tickless::future::ClockSleep"));
        let mut sleep = ClockSleep { base, deadline: Instant::NEVER, timer, waits };
        sleep.arm(until);
        sleep
    }

    /// Returns the deadline on the sleep's own clock. If the clock is realtime, and the sleep was
    /// made for a duration, that is only the deadline as of its creation, because setting the clock
    /// does not change the duration.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns `true` if the sleep's timer has fired. The task is perhaps not woken yet.
    pub fn is_elapsed(&self) -> bool {
        match &self.timer {
            Some(timer) => !timer.is_forked_child() && locked(&self.waits).has_fired,
            None => self.now() >= self.deadline,
        }
    }

    /// Returns the current time on the sleep's own clock.
    pub fn now(&self) -> Instant {
        match &self.timer {
            Some(timer) => timer.now(),
            None => system_time(self.base).into(),
        }
    }

    /// Sets another deadline on the sleep's clock, whether or not the sleep has completed. The task
    /// that polled it last is woken then, unless it was woken since that poll.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.arm(Until::At(deadline));
    }

    /// Makes the sleep end when `after` has passed from now. A suspend counts on boottime only.
    pub fn reset(&mut self, after: Duration) {
        self.arm(Until::After(after));
    }

    fn arm(&mut self, until: Until) {
        self.deadline = match until {
            Until::After(after) => self.now() + after,
            Until::At(deadline) => deadline,
        };
        let Some(timer) = self.timer.as_ref().filter(|timer| !timer.is_forked_child()) else {
            return;
        };
        // The callback of the previous arming must not mark the next one as fired. Waiting for it
        // fails inside of it only, and it calls nothing that could reset this.
        let _ = timer.cancel_sync();
        locked(&self.waits).has_fired = false;
        // Fails only in a forked child.
        let _ = match until {
            Until::After(after) => timer.start(after),
            Until::At(deadline) => timer.start_at(deadline),
        };
    }
}

impl Future for ClockSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &self.timer {
            Some(timer) if timer.is_forked_child() => return Poll::Pending,
            Some(_) => {}
            None if self.now() < self.deadline => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => return coop::proceed(cx),
        }
        // Clone before locking, and drop the old waker after unlocking: both run foreign code.
        let waker = cx.waker().clone();
        let mut state = locked(&self.waits);
        if state.has_fired {
            drop(state);
            return coop::proceed(cx);
        }
        let old = state.waker.replace(waker);
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl fmt::Debug for ClockSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockSleep")
            .field("base", &self.base)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl<F> Timeout<F, ClockSleep> {
    /// Sets the deadline to `after` from now; see [`ClockSleep::reset`].
    pub fn reset(self: Pin<&mut Self>, after: Duration) {
        self.project().sleep.get_mut().reset(after);
    }
}

impl<F: Future> Future for Timeout<F, ClockSleep> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let before = coop::left();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let mut sleep = this.sleep;
        let mut elapsed = sleep.as_mut().poll(cx);
        if elapsed.is_pending() && coop::is_used_up_since(before) && sleep.is_elapsed() {
            elapsed = Poll::Ready(());
        }
        elapsed.map(|()| Err(Elapsed::new(sleep.deadline, None)))
    }
}
