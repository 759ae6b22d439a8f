//! A clock timer's deadline, its conversion to the timers' clock, and its expiry.

use crate::platform::clock::HostClock;
use crate::platform::locked::locked;
use crate::platform::time_base::TimeBase;
use crate::platform::watch::{ClockWatch, POLL_EVERY};
use crate::timer::fired::Fired;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::periodic;
use tickless_core::time::{Instant, Ns, Window};

/// One expiry of a [`ClockTimer`](super::ClockTimer), as its callback sees it.
#[derive(Debug)]
pub struct ClockFired<'a> {
    clock: &'a HostClock,
    base: TimeBase,
    window: Window,
    /// Whether `window` is on the timers' clock instead of the clock `base`.
    is_relative: bool,
    restart: Option<Armed>,
    /// What to wake after the callback.
    waker: Option<Waker>,
}

#[derive(Debug)]
pub(super) struct ClockTimerState {
    pub(super) base: TimeBase,
    pub(super) arming: Mutex<Arming>,
    /// How the timers of this set learn that a clock was set.
    pub(super) watch: Arc<ClockWatch>,
}

/// What the program sees of a timer. The core's timer can be pending, run or be idle at other
/// moments: it also fires to convert a deadline again.
#[derive(Debug, Default)]
pub(super) struct Arming {
    pub(super) armed: Armed,
    /// Whether the user's callback runs.
    pub(super) runs: bool,
    /// How many synchronous cancels are in progress. They cancel every arming until they return.
    pub(super) cancels: u32,
}

/// The window that a timer is armed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Armed {
    /// The timer is not armed. If the core fires it anyway, another thread has cancelled it at the
    /// same time, and the expiry is ignored.
    #[default]
    Idle,
    /// A window on the clock of this timer, which a program can set.
    Own(Window),
    /// A window on the monotonic clock of the set. Setting this timer's clock does not change it.
    Timers(Window),
}

impl Armed {
    /// Returns the deadline of a timer armed by a duration that ends at `at` on the timers' clock.
    #[cfg_attr(not(linux_platform), expect(unused_variables, reason = "there is no boottime"))]
    pub(super) fn relative(clock: &HostClock, base: TimeBase, at: Ns) -> Armed {
        match base {
            #[cfg(linux_platform)]
            TimeBase::Boottime => {
                // Read the timers' clock first: if the thread loses its CPU before the second
                // reading, the deadline is late, never early.
                let left = at.since(clock.now());
                Armed::Own(Window::at(clock.now_on(base).after(left)))
            }
            _ => Armed::Timers(Window::at(at)),
        }
    }
}

impl Arming {
    /// Removes the deadline. Returns what the cancel has found (X10: the callback has not begun for
    /// an arming that is still here).
    pub(super) fn cancel(&mut self) -> Cancel {
        match (std::mem::take(&mut self.armed), self.runs) {
            (_, true) => Cancel::Running,
            (Armed::Idle, false) => Cancel::Idle,
            _ => Cancel::Pending,
        }
    }
}

impl ClockTimerState {
    /// Returns the time that is left until a deadline; [`Ns::NEVER`] without one.
    pub(super) fn left(&self, armed: Armed, clock: &HostClock) -> Ns {
        match armed {
            Armed::Idle => Ns::NEVER,
            Armed::Timers(window) => window.soft.since(clock.now()),
            Armed::Own(window) => window.soft.since(clock.now_on(self.base)),
        }
    }

    /// Converts a window to the timers' clock, with the current difference of the two clocks.
    pub(super) fn on_timers_clock(&self, armed: Armed, clock: &HostClock) -> Window {
        let own = match armed {
            Armed::Idle => return Window::new(Ns::NEVER, Ns::NEVER),
            Armed::Timers(window) => return window,
            Armed::Own(window) => window,
        };
        // Read the timers' clock first: if the thread loses its CPU before the second reading, the
        // converted deadline is too early, never too late. `fire` converts it again then.
        let (now, own_now) = (clock.now(), clock.now_on(self.base));
        let farthest = match self.base != TimeBase::Monotonic && self.watch.polls() {
            true => now.after(POLL_EVERY),
            false => Ns::NEVER,
        };
        let place = |at: Ns| match at {
            Ns::NEVER => Ns::NEVER,
            at => now.after(at.since(own_now)).min(farthest),
        };
        Window::new(place(own.soft), place(own.hard))
    }

    /// Called when the converted deadline has passed. Runs the user's callback only if the deadline
    /// has passed on the timer's own clock, too.
    pub(super) fn fire(
        &self,
        fired: &mut Fired<'_>,
        callback: &mut impl FnMut(&mut ClockFired<'_>),
    ) {
        let clock = fired.clock();
        let mut arming = locked(&self.arming);
        let window = match arming.armed {
            // The timer was cancelled after the core had begun to fire it.
            Armed::Idle => return,
            // The timer was rearmed since: the core will fire it again for the new window.
            Armed::Timers(window) if fired.found_at() < window.soft.into() => return,
            Armed::Timers(window) => window,
            Armed::Own(window) if clock.now_on(self.base) < window.soft => {
                // The timer's own clock has not reached the deadline: it was set back, or is
                // checked once a second, or the conversion was slightly early. Convert the deadline
                // again. If another thread arms the timer concurrently, that arming takes
                // precedence (R9: a restart yields to it).
                let again = self.on_timers_clock(arming.armed, clock);
                fired.restart_window(again);
                return;
            }
            Armed::Own(window) => window,
        };
        let is_relative = matches!(arming.armed, Armed::Timers(_));
        (arming.armed, arming.runs) = (Armed::Idle, true);
        drop(arming);
        let mut expiry =
            ClockFired { clock, base: self.base, window, is_relative, restart: None, waker: None };
        let runs = Runs(self);
        callback(&mut expiry);
        if let Some(waker) = expiry.waker.take() {
            fired.wake_later(waker);
        }
        let mut arming = runs.end();
        let Some(restart) = expiry.restart else { return };
        // If another thread has armed the timer since the callback began, keep that arming, and
        // ignore the callback's request.
        if arming.armed == Armed::Idle {
            if arming.cancels == 0 {
                arming.armed = restart;
            }
            let again = self.on_timers_clock(restart, clock);
            fired.restart_window(again);
        }
    }
}

/// Marks the end of the user's callback, also if that panics (A5: counts come back).
struct Runs<'a>(&'a ClockTimerState);

impl<'a> Runs<'a> {
    fn end(self) -> MutexGuard<'a, Arming> {
        let state = self.0;
        std::mem::forget(self);
        let mut arming = locked(&state.arming);
        arming.runs = false;
        arming
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        locked(&self.0.arming).runs = false;
    }
}

impl ClockFired<'_> {
    /// Returns the deadline that the timer was armed with: on the timers' clock if it was armed by
    /// [`start`](super::ClockTimer::start) on realtime, otherwise on the timer's own clock.
    pub fn deadline(&self) -> Instant {
        self.window.soft.into()
    }

    /// Returns the end of the window that the timer was armed with.
    pub fn hard_deadline(&self) -> Instant {
        self.window.hard.into()
    }

    /// Returns the current time on the timer's own clock. Reads the clock.
    pub fn now(&self) -> Instant {
        self.clock.now_on(self.base).into()
    }

    /// Keeps a waker for the driver's next pause, so that dropping the timer does not wait for it.
    pub(crate) fn wake_later(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }

    /// Rearms the timer for a point in time on its own clock.
    pub fn restart_at(&mut self, deadline: Instant) {
        let deadline = deadline.to_ns();
        self.restart = Some(Armed::Own(Window::at(deadline)));
    }

    /// Rearms the timer, as [`ClockTimer::start`](super::ClockTimer::start) does.
    pub fn restart(&mut self, after: Duration) {
        let at = self.clock.now() + after;
        self.restart = Some(Armed::relative(self.clock, self.base, at));
    }

    /// Rearms the timer for its deadline plus a whole number of periods: for the first such time on
    /// its own clock that has not passed. Returns the number of periods, as [`Fired::forward`]
    /// does. If a timer on realtime was armed by [`start`](super::ClockTimer::start), its new
    /// deadline is also on the timers' clock, so setting realtime does not move it.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let period = Ns::from_duration(period);
        let (now, armed): (Ns, fn(Window) -> Armed) = match self.is_relative {
            true => (self.clock.now(), Armed::Timers),
            false => (self.now().to_ns(), Armed::Own),
        };
        let (window, periods) = periodic::forward(self.window, now, period);
        self.restart = Some(armed(window));
        periods
    }

    /// Withdraws an earlier request of this callback to rearm: the timer stays idle.
    pub fn stop(&mut self) {
        self.restart = None;
    }
}
