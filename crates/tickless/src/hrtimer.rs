//! Precise timers, exact or with a window.

use crate::timer::cancel_error::CancelError;
use crate::timer::fired::Fired;
use crate::timer::owned::Owned;
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::mem::ManuallyDrop;
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{FiresIn, IfPending, Options, StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::time::{CpuId, Instant, Ns, Window};

/// A precise timer with its callback; from [`Timers::hrtimer`].
///
/// It never fires early, and is late by one thread wakeup, a few microseconds on a system that is
/// not busy. Arming and cancelling cost O(log n), take one uncontended lock and allocate nothing.
/// Arming makes a system call only if the base's driver sleeps and the new deadline is earlier than
/// the one it waits for.
///
/// Dropping a timer cancels it and waits until its callback has returned. A drop inside any
/// callback does not wait: if the timer's callback is running, it completes and is then freed.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
///
/// let time = VirtualTime::new();
/// let mut beats = 0;
/// let beat = time.timers().hrtimer(move |fired| {
///     beats += 1;
///     if beats < 3 {
///         fired.forward(Duration::from_millis(1)); // a period after its own deadline: no drift
///     }
/// });
/// beat.start(Duration::from_millis(1))?;
/// time.advance(Duration::from_secs(1));
/// assert_eq!(time.timers().stats().total().fired, 3);
/// # Ok::<(), tickless::callback::StartError>(())
/// ```
#[must_use = "dropping a timer cancels it"]
#[derive(Debug)]
pub struct HrTimer {
    pub(crate) timer: Owned<QueueLink>,
    /// The slack in units of [`SLACK_UNIT_NS`], so that the handle fits three words.
    slack: u32,
    /// Whether the timer is pinned to `base`. An `Option` of the base would take two bytes more.
    is_pinned: bool,
    base: CpuId,
    fires_in: FiresIn,
}

const SLACK_UNIT_NS: u64 = 1_024;

impl Timers {
    /// Creates a precise timer, not armed. Allocates once: 64 bytes if the closure captures at most
    /// 8 bytes.
    ///
    /// The callback runs on a driver thread.
    pub fn hrtimer<F>(&self, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        HrTimer::new(self, callback)
    }
}

impl HrTimer {
    pub(crate) fn new<F>(timers: &Timers, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        HrTimer::around(Owned::new(timers.shared.handle(), callback))
    }

    /// Wraps an owner that must not be dropped. So the returned timer must not be dropped either.
    #[inline]
    pub(crate) fn lent(timer: ManuallyDrop<Owned<QueueLink>>) -> ManuallyDrop<HrTimer> {
        ManuallyDrop::new(HrTimer::around(ManuallyDrop::into_inner(timer)))
    }

    pub(crate) fn around(timer: Owned<QueueLink>) -> HrTimer {
        HrTimer { timer, slack: 0, is_pinned: false, base: CpuId(0), fires_in: FiresIn::Handler }
    }

    /// Pins the timer to one base, whichever CPU arms it. Arming fails if there is no such base.
    pub fn pinned(mut self, base: CpuId) -> HrTimer {
        (self.is_pinned, self.base) = (true, base);
        self
    }

    /// Makes the callback run in the expiry thread of its base, if the base has one (see
    /// [`Builder::expiry_threads`](crate::Builder::expiry_threads)); otherwise it runs in the
    /// driver.
    pub fn deferred(mut self) -> HrTimer {
        self.fires_in = FiresIn::Thread;
        self
    }

    /// Labels the timer. [`Timers::timer_list`](crate::Timers::timer_list) and
    /// [`leaks`](crate::Timers::leaks) show the label, or the type of the callback if there is
    /// none. Takes a lock and may allocate, once.
    pub fn labelled(self, label: &'static str) -> HrTimer {
        self.set_label(label);
        self
    }

    /// Lets the timer be late by up to `slack`, to share wakeups with other timers; zero by
    /// default. The slack is rounded down to a multiple of 1.024 µs, and is at most 73 minutes. It
    /// applies to every later arming, except by [`start_range`](Self::start_range).
    pub fn slack(mut self, slack: Duration) -> HrTimer {
        let units = Ns::from_duration(slack).0 / SLACK_UNIT_NS;
        self.slack = u32::try_from(units).unwrap_or(u32::MAX);
        self
    }

    /// Arms or rearms the timer to fire when `after` has passed. Reads the clock.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(self.window(now + after), now, IfPending::Rearm)
    }

    /// Like [`start`](Self::start), but counted from `now`, which the caller has just read with
    /// [`Timers::now`]. This saves a reading of the clock. If `now` is in the past, the timer fires
    /// earlier by that much, and later if it is in the future.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_from(&self, now: Instant, after: Duration) -> Result<Started, StartError> {
        let now = Ns::from(now);
        self.arm(self.window(now + after), now, IfPending::Rearm)
    }

    /// Arms the timer if it is idle. If it is pending, its deadline may move earlier, never later.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn reduce(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(self.window(now + after), now, IfPending::Reduce)
    }

    /// Like [`start`](Self::start), but with this slack for this arming only. For the C interface.
    ///
    /// # Errors
    ///
    /// Fails as [`start`](Self::start) does.
    #[doc(hidden)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_with_slack(
        &self,
        after: Duration,
        slack: Duration,
    ) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(Window::new(now + after, now + after + slack), now, IfPending::Rearm)
    }

    /// Arms or rearms the timer to fire at `deadline`; at once if that has passed.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        self.start_window(self.window(deadline.into()))
    }

    /// Arms or rearms the timer to fire within a window: not before `soft`, then together with the
    /// next event of its base, and at `hard` with an event of its own if there was none.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_range(&self, soft: Instant, hard: Instant) -> Result<Started, StartError> {
        self.start_window(Window::new(soft.into(), hard.into()))
    }

    /// Cancels the timer without waiting for its callback. Takes no lock if the timer is idle.
    ///
    /// [`Cancel::Running`] means that the callback may still be running. It may even rearm the
    /// timer, by [`Fired::restart`] or [`forward`](Fired::forward). Where that matters, use
    /// [`cancel_sync`](Self::cancel_sync), or a flag that the callback checks. (A
    /// [`Periodic`](crate::Periodic) does not start again after a cancel.)
    pub fn cancel(&self) -> Cancel {
        self.timer.cancel()
    }

    /// Cancels the timer, unless its callback is running. In that case it changes nothing and
    /// returns [`Cancel::Running`]. Takes no lock if the timer is idle.
    pub fn try_cancel(&self) -> Cancel {
        self.timer.try_cancel()
    }

    /// Cancels the timer and waits until its callback is not running. Afterwards the caller sees
    /// what the callback wrote, and may free what it uses. Returns what the call found: the timer
    /// pending, idle, or its callback running.
    ///
    /// If the callback is not running, this costs as much as [`cancel`](Self::cancel). Otherwise it
    /// spins for a few microseconds and then sleeps. Armings made during the wait, including the
    /// callback's own, are cancelled, too. The callback does not inherit the caller's priority.
    ///
    /// While many timers come due on the timer's base, this waits for the base's lock for a bounded
    /// time only, like an arming: the driver releases the lock for every callback, and otherwise
    /// after at most 64 timers, and a waiting thread gets the lock next. If the scheduler takes the
    /// CPU away from the caller or the driver during the call, the call also takes that time, some
    /// milliseconds.
    ///
    /// A wait that would never end is an error; [`CancelError`] lists the cases that are detected.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    #[inline]
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_sync()
    }

    /// Like [`cancel_sync`](Self::cancel_sync) but a little cheaper, for a timer that is never
    /// armed while its callback runs, neither by the callback nor by another thread. If the timer
    /// is pending, this does not check whether its callback is running.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    /// [`NotSingleShot`](CancelError::NotSingleShot) if it was armed while its callback ran.
    #[inline]
    pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_single_shot()
    }

    /// Cancels the timer for good and waits like [`cancel_sync`](Self::cancel_sync): every later
    /// arming fails with [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is shut down all the same.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.shutdown_sync()
    }

    /// Returns `true` if the timer is armed. The answer may be out of date at once.
    pub fn is_pending(&self) -> bool {
        self.timer.is_pending()
    }

    /// Returns `true` if the timer is armed or its callback is running.
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start_window(&self, window: Window) -> Result<Started, StartError> {
        self.arm(window, self.timer.shared().now(), IfPending::Rearm)
    }

    fn window(&self, deadline: Ns) -> Window {
        Window::new(deadline, deadline.after(Ns(u64::from(self.slack) * SLACK_UNIT_NS)))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn arm(&self, window: Window, now: Ns, pending: IfPending) -> Result<Started, StartError> {
        let Self { fires_in, .. } = *self;
        let pinned = self.is_pinned.then_some(self.base);
        let options = Options { pinned, fires_in, pending, ..Options::default() };
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
