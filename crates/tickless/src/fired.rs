//! What a callback is told, and what it may ask for.

use crate::host::Host;
use crate::host::wakers::Wakers;
use crate::timers::Shared;
use std::task::Waker;
use std::time::Duration;
use tickless_core::bases::expiry::{Firing, Verdict};
use tickless_core::periodic;
use tickless_core::time::{CpuId, Ns, Window};

/// A timer that fires, as its callback sees it.
///
/// A callback can have its own timer armed again through this, which costs less than by its
/// handle and cannot collide with it: if somebody else has armed the timer meanwhile, that
/// stands.
#[derive(Debug)]
pub struct Fired<'a> {
    shared: &'a Shared,
    window: Window,
    found: Ns,
    cpu: CpuId,
    wakers: &'a mut Wakers,
    verdict: Verdict,
}

impl<'a> Fired<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        firing: &Firing<Host>,
        wakers: &'a mut Wakers,
    ) -> Fired<'a> {
        let Firing { window, now: found, cpu, .. } = *firing;
        Fired { shared, window, found, cpu, wakers, verdict: Verdict::Done }
    }

    /// The deadline it was armed with: the earliest moment at which it might fire.
    pub fn deadline(&self) -> Ns {
        self.window.soft
    }

    /// The window it was armed with; for a timeout both ends are the deadline.
    pub fn window(&self) -> Window {
        self.window
    }

    /// How long after its deadline it was found to be due. Never negative: no timer is early.
    pub fn late_by(&self) -> Duration {
        self.found - self.window.soft
    }

    /// When it was found to be due. Shared by all timers of one batch; costs nothing.
    pub fn found_at(&self) -> Ns {
        self.found
    }

    /// The present. Reads the clock.
    pub fn now(&self) -> Ns {
        self.shared.now()
    }

    /// The base that it fired on.
    pub fn base(&self) -> CpuId {
        self.cpu
    }

    /// Has it armed again, to fire `after` the present. Reads the clock.
    pub fn restart(&mut self, after: Duration) {
        let deadline = self.now() + after;
        self.restart_range(deadline, deadline);
    }

    /// Has it armed again, to fire within a window.
    pub fn restart_range(&mut self, soft: Ns, hard: Ns) {
        self.verdict = Verdict::Restart(Window::new(soft, hard));
    }

    /// Has it armed again whole periods after its own deadline, so that it does not drift: the
    /// first such moment that has not passed. Returns by how many periods that is: 1 if the
    /// callback kept up, each more is an expiry that was missed. A period of zero counts as a
    /// nanosecond. Reads the clock.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let from = self.asked().unwrap_or(self.window);
        let (window, periods) = periodic::forward(from, self.now(), Ns::from_duration(period));
        self.verdict = Verdict::Restart(window);
        periods
    }

    /// Takes back what was asked for: the timer stays idle.
    pub fn stop(&mut self) {
        self.verdict = Verdict::Done;
    }

    /// The set of timers that it is of.
    pub(crate) fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// What it is to be armed for again.
    pub(crate) fn asked(&self) -> Option<Window> {
        match self.verdict {
            Verdict::Restart(window) => Some(window),
            Verdict::Done => None,
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Has this woken when the batch is over.
    pub(crate) fn wake_later(&mut self, waker: Waker) {
        self.wakers.collect(waker);
    }
}
