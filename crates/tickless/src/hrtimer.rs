//! High-resolution timers, exact or with a window.

use crate::fired::Fired;
use crate::host::owned::Owned;
use crate::timers::Shared;
use crate::{CancelError, Timers};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{FiresIn, Options, StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::time::{CpuId, Ns, Window};

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
    pub(crate) timer: Owned<QueueLink>,
    pinned: Option<CpuId>,
    fires_in: FiresIn,
}

impl HrTimer {
    pub(crate) fn new<F>(timers: &Timers, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        HrTimer::around(Owned::new(timers.shared.clone(), callback))
    }

    pub(crate) fn around(timer: Owned<QueueLink>) -> HrTimer {
        HrTimer { timer, pinned: None, fires_in: FiresIn::Handler }
    }

    /// Pins it to one base, whichever CPU arms it. Arming fails if there is no such base.
    #[must_use]
    pub fn pinned(mut self, base: CpuId) -> HrTimer {
        self.pinned = Some(base);
        self
    }

    /// Has its callback run in the expiry thread of its base, if there is one (see
    /// [`Builder::deferral`](crate::Builder::deferral)); otherwise it runs in the driver.
    #[must_use]
    pub fn deferred(mut self) -> HrTimer {
        self.fires_in = FiresIn::Thread;
        self
    }

    /// Says whose it is, for [`Timers::timer_list`](crate::Timers::timer_list) and its like.
    /// Otherwise that is known by the callback's type. Takes a lock and may allocate, once.
    #[must_use]
    pub fn labelled(self, label: &'static str) -> HrTimer {
        self.set_label(label);
        self
    }

    /// Arms it, or arms it anew, to fire `after` the present. Reads the clock.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_with_slack(after, Duration::ZERO)
    }

    /// The same, but it may be late by `slack` to share a wakeup with other timers.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_with_slack(
        &self,
        after: Duration,
        slack: Duration,
    ) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(Window::new(now + after, now + after + slack), now)
    }

    /// Arms it, or arms it anew, for a point in time. One that has passed fires at once.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, deadline: Ns) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms it, or arms it anew, to fire anywhere in a window: not before `soft`; from then on
    /// with any event of its base, and at `hard` with one of its own.
    #[cfg_attr(debug_assertions, track_caller)]
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

    /// Cancels it, unless its callback is running: then this says so and changes nothing. No lock
    /// if it is idle.
    pub fn try_cancel(&self) -> Cancel {
        self.timer.try_cancel()
    }

    /// Cancels it and waits until its callback runs nowhere: then what the callback wrote can be
    /// seen, and what it uses can go. Says what it found when it came.
    ///
    /// If the callback is not running this costs what [`cancel`](Self::cancel) does. Otherwise
    /// it waits, a few microseconds awake and then asleep; an arming that comes meanwhile, the
    /// callback's own included, is cancelled too. The callback does not inherit the caller's
    /// priority. A thread that is made to end while it waits leaves nothing behind.
    ///
    /// A wait that would never end is an error; see [`CancelError`] for which can be seen.
    #[inline]
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_sync()
    }

    /// The same, a little cheaper, for a timer that nobody arms again while its callback runs,
    /// the callback included: if it is pending, nobody looks for the callback. If it was armed
    /// after all, this says so: [`CancelError::NotSingleShot`].
    #[inline]
    pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_single_shot()
    }

    /// Cancels it for good and waits like [`cancel_sync`](Self::cancel_sync): every later arming
    /// is [`StartError::Shut`], whoever tries.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.shutdown_sync()
    }

    /// Is it armed? May be out of date as soon as it is known.
    pub fn is_pending(&self) -> bool {
        self.timer.is_pending()
    }

    /// Is it armed, or its callback running?
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn arm(&self, window: Window, now: Ns) -> Result<Started, StartError> {
        let Self { pinned, fires_in, .. } = *self;
        let options = Options { pinned, fires_in, ..Options::default() };
        self.timer.start(window, now, options)
    }

    pub(crate) fn set_label(&self, label: &'static str) {
        self.timer.set_label(label);
    }

    pub(crate) fn is_given_back(&self) -> bool {
        self.timer.is_given_back()
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.timer.shared()
    }
}
