//! Precise timers, exact or with a window.

use crate::methods::timer_methods;
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
/// Arming makes a system call only if the base's driver sleeps past the new deadline. Dropping it
/// works as for a [`Timeout`](crate::Timeout).
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
    pub fn hrtimer<F>(&self, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        HrTimer::around(Owned::new(self.shared.handle(), callback))
    }
}

impl HrTimer {
    pub(crate) fn around(timer: Owned<QueueLink>) -> HrTimer {
        HrTimer { timer, slack: 0, is_pinned: false, base: CpuId(0), fires_in: FiresIn::Handler }
    }

    /// Pins the timer to one base, whichever CPU arms it. Arming fails if there is no such base.
    pub fn pinned(mut self, base: CpuId) -> HrTimer {
        (self.is_pinned, self.base) = (true, base);
        self
    }

    /// Makes the callback run in the base's [expiry thread](crate::Builder::expiry_threads), if
    /// there is one; otherwise it runs in the driver.
    pub fn deferred(mut self) -> HrTimer {
        self.fires_in = FiresIn::Thread;
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

    /// Like [`start`](Self::start), with this slack for this arming only. For the C interface.
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
        let now = self.timer.now();
        let window = Window::new(now + after, now + after + slack);
        self.arm(window, now, IfPending::Rearm)
    }

    /// Arms or rearms the timer to fire within a window. It does not fire before `soft`. After
    /// that, it fires with the next event of its base, at the latest at `hard`, where it causes an
    /// event if there was none.
    ///
    /// # Errors
    ///
    /// Fails as [`start`](Self::start) does.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_range(&self, soft: Instant, hard: Instant) -> Result<Started, StartError> {
        self.start_window(Window::new(soft.to_ns(), hard.to_ns()))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn start_window(&self, window: Window) -> Result<Started, StartError> {
        self.arm(window, self.timer.now(), IfPending::Rearm)
    }

    fn window(&self, deadline: Ns) -> Window {
        Window::new(deadline, deadline.after(Ns(u64::from(self.slack) * SLACK_UNIT_NS)))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn arm(&self, window: Window, now: Ns, pending: IfPending) -> Result<Started, StartError> {
        let pinned = self.is_pinned.then_some(self.base);
        let options = Options { pinned, fires_in: self.fires_in, pending, ..Options::default() };
        self.timer.start_with(window, now, options)
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

timer_methods!(HrTimer, QueueLink);
