//! What a periodic timer is expected to do next, and one expiry of it.

use super::Missed;
use crate::timer::fired::Fired;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::phase::{Phase, PhaseSlot};
use tickless_core::time::{Ns, Window};

/// What a periodic timer is doing. Its lock is taken before a base's, never under one.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(super) period: Ns,
    /// The window of its next expiry; `None` if it was stopped.
    pub(super) expected: Option<Window>,
    /// What becomes of periods that are missed.
    pub(super) missed: Missed,
    /// Counts starts and stops.
    pub(super) turn: u64,
    /// Its place on the circle of its period, and by which policy; `None` without a phase.
    pub(super) slot: Option<(Phase, PhaseSlot)>,
}

impl Run {
    /// Of a timer that is not started.
    pub(crate) fn new(missed: Missed) -> Run {
        Run { missed, ..Run::default() }
    }
}

/// One expiry of a periodic timer, as its callback sees it. It has everything that a [`Fired`] has.
#[derive(Debug)]
pub struct PeriodFired<'a, 'b> {
    fired: &'a mut Fired<'b>,
    overruns: u64,
}

impl Run {
    /// Whatever comes now is not expected any more. Says whether that was so before.
    pub(super) fn stop(&mut self) -> bool {
        self.turn += 1;
        self.expected.take().is_none()
    }

    /// An expiry's turn, period and what becomes of those that were missed; `None` if it is not the
    /// one that is expected.
    fn begin(&self, fired: &mut Fired<'_>) -> Option<(u64, Ns, Missed)> {
        if self.expected == Some(fired.window()) {
            return Some((self.turn, self.period, self.missed));
        }
        self.overrule(fired);
        None
    }

    /// The callback is over: what it asked for comes next, unless the timer was stopped or
    /// started since it began.
    fn end(&mut self, turn: u64, fired: &mut Fired<'_>) {
        if self.turn == turn {
            self.expected = fired.asked();
        } else {
            self.overrule(fired);
        }
    }

    fn overrule(&self, fired: &mut Fired<'_>) {
        match self.expected {
            // It is armed for that already, so this request is ignored (R9).
            Some(window) => fired.restart_window(window),
            None => fired.stop(),
        }
    }
}

/// Does a periodic timer go on after its callback?
pub(crate) enum Then {
    GoesOn,
    /// It is gone, and its run with it.
    Gone,
}

/// One expiry of a periodic timer: what its timer's callback does.
pub(crate) fn pass<'a>(
    run: impl Fn() -> MutexGuard<'a, Run>,
    fired: &mut Fired<'_>,
    callback: impl FnOnce(&mut PeriodFired<'_, '_>) -> Then,
) {
    let Some((turn, period, missed)) = run().begin(fired) else { return };
    let overruns = fired.next_period(period, missed);
    match callback(&mut PeriodFired { fired: &mut *fired, overruns }) {
        Then::GoesOn => run().end(turn, fired),
        Then::Gone => {}
    }
}

pub(crate) fn lock(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PeriodFired<'_, '_> {
    /// How many expiries have been missed by now; 0 if the timer keeps up. With [`Missed::Burst`],
    /// those that are still to be made up for.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }
}

impl<'b> Deref for PeriodFired<'_, 'b> {
    type Target = Fired<'b>;

    fn deref(&self) -> &Fired<'b> {
        self.fired
    }
}

impl DerefMut for PeriodFired<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.fired
    }
}

impl Fired<'_> {
    /// Asks for the next period, and says how many were missed.
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
