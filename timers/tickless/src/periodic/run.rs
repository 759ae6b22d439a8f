//! The state that a periodic timer's handle and callback share, and the handling of an expiry.

use super::Missed;
use crate::timer::fired::Fired;
use std::sync::MutexGuard;
use tickless_core::phase::{Phase, PhaseSlot};
use tickless_core::time::{Ns, Window};

/// The state of a periodic timer, under a mutex. Lock order: this mutex before the lock of a base.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(super) period: Ns,
    /// The window of the next expiry; `None` if the timer was stopped.
    pub(super) expected: Option<Window>,
    pub(super) missed: Missed,
    /// Counts starts and stops, so that an expiry notices those that happen during its callback.
    pub(super) turn: u64,
    /// The phase that the program chose, and the resulting place in the period.
    pub(super) slot: Option<(Phase, PhaseSlot)>,
}

impl Run {
    pub(crate) fn new(missed: Missed) -> Run {
        Run { missed, ..Run::default() }
    }

    /// Stops the timer: an expiry that comes later does not run the callback. Returns whether the
    /// timer had been stopped before.
    pub(super) fn stop(&mut self) -> bool {
        self.turn += 1;
        self.expected.take().is_none()
    }

    /// Returns the number of starts and stops so far, the period, and what happens to missed
    /// periods. `None` if the expiry is stale: since it was armed, the timer has been stopped or
    /// started again.
    fn begin(&self, fired: &mut Fired<'_>) -> Option<(u64, Ns, Missed)> {
        if self.expected == Some(fired.window()) {
            return Some((self.turn, self.period, self.missed));
        }
        self.overrule(fired);
        None
    }

    /// Ends an expiry after its callback has returned: stores the window that the callback
    /// requested as the next one, unless the timer was stopped or started again since the expiry
    /// began.
    fn end(&mut self, turn: u64, fired: &mut Fired<'_>) {
        if self.turn == turn {
            self.expected = fired.asked();
        } else {
            self.overrule(fired);
        }
    }

    /// If the timer was started again or stopped during an expiry, replaces the request of the
    /// expiry: requests the window that the start has stored, or nothing after a stop.
    fn overrule(&self, fired: &mut Fired<'_>) {
        match self.expected {
            // If another thread has already armed the timer for that window, this does nothing (R9:
            // a restart yields to a concurrent arming).
            Some(window) => fired.restart_window(window),
            None => fired.stop(),
        }
    }
}

/// Whether a periodic timer still exists after its callback.
pub(crate) enum AfterCallback {
    TimerAlive,
    /// The timer's memory, and with it the [`Run`], was given back to its owner.
    TimerFreed,
}

/// Handles an expiry of a periodic timer, unless stale: requests the next one, runs the callback.
pub(crate) fn pass<'a>(
    run: impl Fn() -> MutexGuard<'a, Run>,
    fired: &mut Fired<'_>,
    callback: impl FnOnce(&mut Fired<'_>) -> AfterCallback,
) {
    let Some((turn, period, missed)) = run().begin(fired) else { return };
    fired.overruns = fired.next_period(period, missed);
    match callback(fired) {
        AfterCallback::TimerAlive => run().end(turn, fired),
        AfterCallback::TimerFreed => {}
    }
}

impl Fired<'_> {
    /// Restarts the timer for its next period. Returns how many periods were missed.
    fn next_period(&mut self, period: Ns, missed: Missed) -> u64 {
        let Window { soft, hard } = self.window();
        match missed {
            Missed::Skip => self.forward(period.to_duration()).saturating_sub(1),
            Missed::Burst => {
                self.restart_window(Window::new(soft.after(period), hard.after(period)));
                self.now().to_ns().since(soft).0 / period.0.max(1)
            }
            Missed::Delay => {
                let now = self.now().to_ns();
                let next = now.after(period);
                self.restart_window(Window::new(next, next.after(hard.since(soft))));
                now.since(soft).0 / period.0.max(1)
            }
        }
    }
}
