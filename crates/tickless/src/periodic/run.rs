//! The state that a periodic timer's handle and callback share, and one expiry of the timer.

use super::Missed;
use crate::timer::fired::Fired;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::phase::{Phase, PhaseSlot};
use tickless_core::time::{Ns, Window};

/// The state of a periodic timer. Its lock is taken before a base's lock, never while holding one.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(super) period: Ns,
    /// The window of the next expiry; `None` if the timer was stopped.
    pub(super) expected: Option<Window>,
    /// What happens to missed periods.
    pub(super) missed: Missed,
    /// Counts starts and stops.
    pub(super) turn: u64,
    /// The timer's phase and its place in the period; `None` without a phase.
    pub(super) slot: Option<(Phase, PhaseSlot)>,
}

impl Run {
    /// Creates the state of a timer that is not started.
    pub(crate) fn new(missed: Missed) -> Run {
        Run { missed, ..Run::default() }
    }
}

impl Run {
    /// Makes every later expiry stale. Returns whether the timer was stopped before.
    pub(super) fn stop(&mut self) -> bool {
        self.turn += 1;
        self.expected.take().is_none()
    }

    /// Returns the turn, the period and the handling of missed periods; `None` if the expiry is
    /// stale.
    fn begin(&self, fired: &mut Fired<'_>) -> Option<(u64, Ns, Missed)> {
        if self.expected == Some(fired.window()) {
            return Some((self.turn, self.period, self.missed));
        }
        self.overrule(fired);
        None
    }

    /// Ends an expiry after its callback has returned: what the callback requested is expected
    /// next, unless the timer was stopped or started since the expiry began.
    fn end(&mut self, turn: u64, fired: &mut Fired<'_>) {
        if self.turn == turn {
            self.expected = fired.asked();
        } else {
            self.overrule(fired);
        }
    }

    /// Replaces what the callback requested by the expected window.
    fn overrule(&self, fired: &mut Fired<'_>) {
        match self.expected {
            // The timer is already armed for that window, so the core ignores this request (R9: a
            // restart yields to a concurrent arming).
            Some(window) => fired.restart_window(window),
            None => fired.stop(),
        }
    }
}

/// Whether a periodic timer still exists after its callback.
pub(crate) enum AfterCallback {
    TimerAlive,
    /// The callback has given back the timer's memory, which includes the run.
    TimerFreed,
}

/// Handles one expiry of a periodic timer: requests the next period, then runs the callback.
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

pub(crate) fn lock(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fired<'_> {
    /// Requests the next period, and returns how many were missed.
    fn next_period(&mut self, period: Ns, missed: Missed) -> u64 {
        let Window { soft, hard } = self.window();
        match missed {
            Missed::Skip => self.forward(period.to_duration()).saturating_sub(1),
            Missed::Burst => {
                self.restart_window(Window::new(soft.after(period), hard.after(period)));
                Ns::from(self.now()).since(soft).0 / period.0.max(1)
            }
            Missed::Delay => {
                let now = Ns::from(self.now());
                let next = now.after(period);
                self.restart_window(Window::new(next, next.after(hard.since(soft))));
                now.since(soft).0 / period.0.max(1)
            }
        }
    }
}
