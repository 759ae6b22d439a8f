//! The argument of a callback: describes the expiry, and lets the callback rearm its timer.

use super::wakers::Wakers;
use crate::platform::clock::HostClock;
use std::task::Waker;
use std::time::Duration;
use tickless_core::bases::firing::{CallbackResult, Expiry};
use tickless_core::periodic;
use tickless_core::time::{CpuId, Instant, Ns, Window};

/// A timer that fires, as its callback sees it. A callback can rearm its own timer through this,
/// unless another thread has armed the timer since it fired: that thread's deadline is kept.
#[derive(Debug)]
pub struct Fired<'a> {
    expiry: &'a Expiry,
    clock: &'a HostClock,
    wakers: &'a mut Wakers,
    result: CallbackResult,
    /// The missed expiries of a periodic timer.
    pub(crate) overruns: u64,
}

impl<'a> Fired<'a> {
    #[inline]
    pub(super) fn new(
        expiry: &'a Expiry,
        clock: &'a HostClock,
        wakers: &'a mut Wakers,
    ) -> Fired<'a> {
        Fired { expiry, clock, wakers, result: CallbackResult::Done, overruns: 0 }
    }

    /// Returns the deadline that the timer was armed with. The timer never fires earlier.
    pub fn deadline(&self) -> Instant {
        self.expiry.window.soft.into()
    }

    /// Returns the end of the window that the timer was armed with: its deadline plus its slack.
    pub fn hard_deadline(&self) -> Instant {
        self.expiry.window.hard.into()
    }

    pub(crate) fn window(&self) -> Window {
        self.expiry.window
    }

    /// Returns how long after its deadline the driver found that the timer was due.
    pub fn late_by(&self) -> Duration {
        self.expiry.late.to_duration()
    }

    /// Returns when the driver found that the timer was due. Reads no clock: all timers of a batch
    /// share one reading.
    pub fn found_at(&self) -> Instant {
        self.expiry.now.into()
    }

    /// Returns the current time. Reads the clock.
    pub fn now(&self) -> Instant {
        self.clock.now().into()
    }

    /// Returns the base that it fired on.
    pub fn base(&self) -> CpuId {
        self.expiry.cpu
    }

    /// Returns how many expiries of a [`Periodic`](crate::Periodic) timer have been missed by now.
    /// With [`Missed::Burst`](crate::periodic::Missed::Burst): how many have yet to be made up.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Rearms the timer to fire `after` from now. Reads the clock.
    pub fn restart(&mut self, after: Duration) {
        let deadline = self.now() + after;
        self.restart_range(deadline, deadline);
    }

    /// Rearms the timer to fire between the times `soft` and `hard`.
    pub fn restart_range(&mut self, soft: Instant, hard: Instant) {
        self.restart_window(Window::new(soft.to_ns(), hard.to_ns()));
    }

    /// Rearms the timer a whole number of periods after its own deadline, for the first such time
    /// that has not passed, so that it does not drift. Returns the number of periods: 1 if the
    /// callback keeps up. A period of zero counts as a nanosecond. Reads the clock.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let from = self.asked().unwrap_or(self.expiry.window);
        let (window, periods) =
            periodic::forward(from, self.clock.now(), Ns::from_duration(period));
        self.result = CallbackResult::Restart(window);
        periods
    }

    /// Undoes a request to rearm the timer: it stays idle.
    pub fn stop(&mut self) {
        self.result = CallbackResult::Done;
    }

    pub(crate) fn restart_window(&mut self, window: Window) {
        self.result = CallbackResult::Restart(window);
    }

    pub(crate) fn clock(&self) -> &'a HostClock {
        self.clock
    }

    /// Returns the window for which the callback has asked to rearm its timer.
    pub(crate) fn asked(&self) -> Option<Window> {
        match self.result {
            CallbackResult::Restart(window) => Some(window),
            CallbackResult::Done => None,
        }
    }

    /// Keeps a waker for the driver's next pause.
    pub(crate) fn wake_later(&mut self, waker: Waker) {
        self.wakers.collect(waker);
    }
}
