//! The state that a periodic timer's handle and callback share, and the handling of an expiry.

use super::Missed;
use crate::timer::fired::Fired;
use std::sync::MutexGuard;
use tickless_core::bases::cancel::Cancel;
use tickless_core::phase::{Phase, PhaseSlot};
use tickless_core::time::{Ns, Window};

/// The state of a periodic timer, under a mutex. Lock order: this mutex before the lock of a base.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(super) period: Ns,
    /// The window of the next expiry; `None` if the timer was stopped, or its callback runs and it
    /// was not started since.
    pub(super) expected: Option<Window>,
    pub(super) missed: Missed,
    /// Counts starts and stops, so that an expiry notices those that happen during its callback.
    pub(super) turn: u64,
    /// While the callback runs, the value of `turn` at its beginning.
    pub(super) running: Option<u64>,
    /// How many synchronous cancels are in progress. They cancel every start until they return.
    pub(super) cancels: u32,
    /// The phase that the program chose, and the resulting place in the period.
    pub(super) slot: Option<(Phase, PhaseSlot)>,
}

impl Run {
    pub(crate) fn new(missed: Missed) -> Run {
        Run { missed, ..Run::default() }
    }

    /// Stops the timer: an expiry that comes later does not run the callback. Returns what the
    /// cancel has found. The core's own result does not tell whether the callback has begun.
    pub(super) fn stop(&mut self) -> Cancel {
        self.turn += 1;
        match (self.expected.take(), self.running) {
            (_, Some(_)) => Cancel::Running,
            (Some(_), None) => Cancel::Pending,
            (None, None) => Cancel::Idle,
        }
    }

    /// Begins an expiry. Returns the period and what happens to missed periods. `None` if the
    /// expiry is stale: since it was armed, the timer has been stopped or started again.
    fn begin(&mut self, fired: &mut Fired<'_>) -> Option<(Ns, Missed)> {
        if self.expected != Some(fired.window()) {
            self.overrule(fired);
            return None;
        }
        self.expected = None;
        self.running = Some(self.turn);
        Some((self.period, self.missed))
    }

    /// Ends an expiry after its callback: stores the window that the callback requested as the next
    /// one, unless the timer was stopped or started again since the expiry began.
    fn end(&mut self, fired: &mut Fired<'_>) {
        if self.running.take() == Some(self.turn) {
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

/// Handles an expiry of a periodic timer, unless stale: requests the next one, runs the callback.
/// `run` returns `None` after the callback has given back the timer's memory, and with it the run.
pub(crate) fn pass<'a, R: Fn() -> Option<MutexGuard<'a, Run>>>(
    run: R,
    fired: &mut Fired<'_>,
    callback: impl FnOnce(&mut Fired<'_>),
) {
    let begun = run().and_then(|mut run| run.begin(fired));
    let Some((period, missed)) = begun else { return };
    fired.overruns = fired.next_period(period, missed);
    let mut ends = Ends { run, fired, has_returned: false };
    callback(ends.fired);
    ends.has_returned = true;
}

/// Ends an expiry when dropped, also if the callback panics: the timer stops then.
struct Ends<'a, 'b, 'c, R: Fn() -> Option<MutexGuard<'a, Run>>> {
    run: R,
    fired: &'b mut Fired<'c>,
    has_returned: bool,
}

impl<'a, R: Fn() -> Option<MutexGuard<'a, Run>>> Drop for Ends<'a, '_, '_, R> {
    fn drop(&mut self) {
        if !self.has_returned {
            self.fired.stop();
        }
        if let Some(mut run) = (self.run)() {
            run.end(self.fired);
        }
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
