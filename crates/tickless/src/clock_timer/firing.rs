//! What a timer is armed for, where on the timers' clock that is, and what happens when it fires.

use crate::platform::clock::HostClock;
use crate::platform::time_base::TimeBase;
use crate::platform::watch::{ClockWatch, LOOK};
use crate::timer::fired::Fired;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::periodic;
use tickless_core::time::{Instant, Ns, Window};

/// One expiry of a [`ClockTimer`](super::ClockTimer), as its callback sees it.
#[derive(Debug)]
pub struct ClockFired<'a> {
    clock: &'a HostClock,
    base: TimeBase,
    window: Window,
    /// Is the window one on the timers' clock?
    is_relative: bool,
    restart: Option<Armed>,
}

/// What a timer is armed for, for its handle and its callback.
#[derive(Debug)]
pub(super) struct State {
    pub(super) base: TimeBase,
    pub(super) armed: Mutex<Armed>,
    /// How timers of its set learn of steps.
    pub(super) watch: Arc<ClockWatch>,
}

/// What a timer is armed for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Armed {
    /// Nothing: if the core has it armed, that was cancelled.
    Idle,
    /// A window on its own clock.
    Own(Window),
    /// One on the timers' clock, which no step moves.
    Timers(Window),
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Armed {
    pub(super) fn relative(clock: &HostClock, base: TimeBase, after: Duration) -> Armed {
        let window = |now: Ns| Window::new(now + after, now + after);
        match base {
            #[cfg(linux_platform)]
            TimeBase::Boottime => Armed::Own(window(clock.now_on(base))),
            _ => Armed::Timers(window(clock.now())),
        }
    }
}

impl State {
    /// Where on the timers' clock that is, as far as one can tell now.
    pub(super) fn on_timers_clock(&self, armed: Armed, clock: &HostClock) -> Window {
        let own = match armed {
            Armed::Idle => return Window::new(Ns::NEVER, Ns::NEVER),
            Armed::Timers(window) => return window,
            Armed::Own(window) => window,
        };
        // Ours first: if the thread loses its CPU in between, the timer looks too early rather
        // than too late.
        let (now, own_now) = (clock.now(), clock.now_on(self.base));
        let farthest = match self.base != TimeBase::Monotonic && self.watch.is_blind() {
            true => now.after(LOOK),
            false => Ns::NEVER,
        };
        let place = |at: Ns| match at {
            Ns::NEVER => Ns::NEVER,
            at => now.after(at.since(own_now)).min(farthest),
        };
        Window::new(place(own.soft), place(own.hard))
    }

    /// What the timer's callback is to the core.
    pub(super) fn fire(
        &self,
        fired: &mut Fired<'_>,
        callback: &mut impl FnMut(&mut ClockFired<'_>),
    ) {
        let clock = fired.clock();
        let mut armed = locked(&self.armed);
        let window = match *armed {
            // Cancelled, when the core had begun to fire it.
            Armed::Idle => return,
            // Armed for this anew since, and that will come.
            Armed::Timers(window) if fired.found_at() < window.soft.into() => return,
            Armed::Timers(window) => window,
            Armed::Own(window) if clock.now_on(self.base) < window.soft => {
                // Its clock went back, or is a moment behind. Whoever arms it anew stands (R9).
                let again = self.on_timers_clock(*armed, clock);
                fired.restart_window(again);
                return;
            }
            Armed::Own(window) => window,
        };
        let is_relative = matches!(*armed, Armed::Timers(_));
        *armed = Armed::Idle;
        drop(armed);
        let mut told = ClockFired { clock, base: self.base, window, is_relative, restart: None };
        callback(&mut told);
        let Some(restart) = told.restart else { return };
        let mut armed = locked(&self.armed);
        // Somebody who has armed it meanwhile stands.
        if matches!(*armed, Armed::Idle) {
            *armed = restart;
            let again = self.on_timers_clock(restart, clock);
            fired.restart_window(again);
        }
    }
}

impl ClockFired<'_> {
    /// The deadline that the timer was armed with: on its own clock, but on the timers' clock if it
    /// was armed by [`start`](super::ClockTimer::start) on realtime.
    pub fn deadline(&self) -> Instant {
        self.window.soft.into()
    }

    /// The end of the window that the timer was armed with, on the same clock as
    /// [`deadline`](Self::deadline).
    pub fn hard_deadline(&self) -> Instant {
        self.window.hard.into()
    }

    /// The current time on the timer's own clock. Reads the clock.
    pub fn now(&self) -> Instant {
        self.clock.now_on(self.base).into()
    }

    /// Rearms the timer for a point in time on its own clock.
    pub fn restart_at(&mut self, deadline: Instant) {
        let deadline = Ns::from(deadline);
        self.restart = Some(Armed::Own(Window::new(deadline, deadline)));
    }

    /// Rearms the timer to fire when `after` has passed, as [`start`](super::ClockTimer::start)
    /// does.
    pub fn restart(&mut self, after: Duration) {
        self.restart = Some(Armed::relative(self.clock, self.base, after));
    }

    /// Rearms the timer whole periods of its own clock after its deadline, for the first such
    /// moment that has not passed. Returns how many periods that is: 1 if the callback kept up and
    /// the clock was not set. A period of zero counts as a nanosecond.
    ///
    /// If the clock goes back, the timer does not fire until the clock reaches that moment. A timer
    /// on realtime that was armed by [`start`](super::ClockTimer::start) stays relative: setting
    /// the time of day does not change its period.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let period = Ns::from_duration(period);
        let (now, armed): (Ns, fn(Window) -> Armed) = match self.is_relative {
            true => (self.clock.now(), Armed::Timers),
            false => (self.now().into(), Armed::Own),
        };
        let (window, periods) = periodic::forward(self.window, now, period);
        self.restart = Some(armed(window));
        periods
    }

    /// Takes back an earlier request to rearm: the timer stays idle.
    pub fn stop(&mut self) {
        self.restart = None;
    }
}
