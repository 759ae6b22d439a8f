//! High-resolution timers, exact or with a window.

use crate::Timers;
use crate::fired::Fired;
use crate::host::owned::Owned;
use crate::timers::Shared;
use std::time::Duration;
use tickless_core::base::{Options, StartError, Started};
use tickless_core::cancel::Cancel;
use tickless_core::link::QueueLink;
use tickless_core::queue::Window;
use tickless_core::time::{CpuId, Ns};

/// A high-resolution timer with its callback; from [`Timers::hrtimer`].
///
/// Never early; late by what waking a thread takes on this system, a few microseconds when it
/// is not busy. Arming and cancelling cost O(log n), take one uncontended lock, allocate
/// nothing, and make no system call unless the new deadline comes before everything that the
/// base's sleeping driver waits for.
///
/// Dropping it cancels it and waits for a running callback to end. A callback that drops a timer,
/// its own or another, does not wait: if that one's callback is running it ends by itself, and
/// is dropped then.
#[derive(Debug)]
pub struct HrTimer {
    timer: Owned<QueueLink>,
    pinned: Option<CpuId>,
}

impl HrTimer {
    pub(crate) fn new<F>(timers: &Timers, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        let timer = Owned::new(timers.shared.clone(), callback);
        HrTimer { timer, pinned: None }
    }

    /// Pins it to one base, whichever CPU arms it. Arming fails if there is no such base.
    #[must_use]
    pub fn pinned(mut self, base: CpuId) -> HrTimer {
        self.pinned = Some(base);
        self
    }

    /// Arms it, or arms it anew, to fire `after` the present. Reads the clock.
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_with_slack(after, Duration::ZERO)
    }

    /// The same, but it may be late by `slack` to share a wakeup with other timers.
    pub fn start_with_slack(
        &self,
        after: Duration,
        slack: Duration,
    ) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(Window::new(now + after, now + after + slack), now)
    }

    /// Arms it, or arms it anew, for a point in time. One that has passed fires at once.
    pub fn start_at(&self, deadline: Ns) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms it, or arms it anew, to fire anywhere in a window: not before `soft`; from then on
    /// with any event of its base, and at `hard` with one of its own.
    pub fn start_range(&self, soft: Ns, hard: Ns) -> Result<Started, StartError> {
        self.arm(Window::new(soft, hard), self.timer.shared().now())
    }

    /// Cancels it without waiting for its callback. No lock if it is idle.
    ///
    /// [`Cancel::Running`] says that the callback may still be at work, and may still have the
    /// timer armed again, through [`Fired::restart`] and its like: a callback that does so has
    /// to be told otherwise. (A [`Periodic`](crate::Periodic) is.)
    pub fn cancel(&self) -> Cancel {
        self.timer.cancel()
    }

    /// Is it armed? May be out of date as soon as it is known.
    pub fn is_pending(&self) -> bool {
        self.timer.is_pending()
    }

    /// Is it armed, or its callback running?
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }

    fn arm(&self, window: Window, now: Ns) -> Result<Started, StartError> {
        let options = Options { pinned: self.pinned, ..Options::default() };
        self.timer.start(window, now, options)
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.timer.shared()
    }
}
