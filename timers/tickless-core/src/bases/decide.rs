//! Decides what an operation does to a timer; `start`, `cancel` and `expiry` carry that out.
//!
//! A decision depends on the timer's state, on the operation, and on what the lock of the timer's
//! base shows ([`Seen`]). Whether a callback runs is recorded in the base, not in the timer's
//! state. "Refuse once" counts the arming as made and cancelled; later armings can succeed. "One
//! more waits" counts another canceller that waits for the callback:
//!
//! | operation | shut down | idle | pending | callback runs | runs, being cancelled |
//! |---|---|---|---|---|---|
//! | start | refuse | arm or move | arm or move, or keep | arm here (X2) | refuse once (X3) |
//! | restart | keep | arm | keep (R9) | arm | refuse once (X3) |
//! | cancel | idle | idle | idle | idle | idle, still being cancelled |
//! | try cancel | idle | idle | idle | keep | keep |
//! | cancel and wait | idle | idle | idle | idle, one more waits | idle, one more waits |
//! | single-shot cancel | idle | idle | idle, unchecked (X8) | idle, one more waits | likewise |
//! | shut down | shut | shut | shut | shut | shut |

use crate::state::Life;

/// What an arming does to a timer that is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IfPending {
    /// Rearms the timer, for an earlier or a later time.
    #[default]
    Rearm,
    /// Rearms the timer only if its deadline moves earlier (Linux's `timer_reduce`).
    Reduce,
    /// Leaves the timer as it is. So a callback that arms its timer undoes no other thread's start.
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// Arm the timer. For [`IfPending::Reduce`] the caller has compared the deadlines, and passes
    /// `Leave` if the new one is not earlier.
    Start(IfPending),
    Restart,
    Cancel,
    /// Cancel the timer's arming, unless its callback runs.
    TryCancel,
    /// Cancel the timer's arming, and every arming that is made until its callback has returned.
    CancelAndWait,
    /// Like `CancelAndWait`, for a timer that is not armed while its callback runs.
    CancelSingleShot,
    Shutdown,
}

/// What a thread that holds the lock of a timer's base sees in addition to the timer's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    /// The callback of the timer runs on this base.
    pub(super) is_running: bool,
    /// The base is online, and it is the one on which the timer should be armed.
    pub(super) is_target: bool,
}

/// What is done to a timer.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// The timer was shut down: report that.
    Refuse,
    Keep,
    /// Do not arm the timer, because it is being cancelled: count an arming and a cancel, and store
    /// this state.
    RefuseOnce(Life),
    Arm,
    Move,
    /// Take the timer off its list if it is pending, and store this state.
    Disarm(Life),
}

impl Operation {
    /// Returns whether the decision depends on [`Seen::is_running`]. If it does not, the caller
    /// saves the check, which reads one word for each runner.
    pub(super) const fn checks_running(self, life: Life) -> bool {
        !(matches!(self, Operation::CancelSingleShot) && life.is_pending())
    }

    /// Decides what to do to a timer in this state.
    pub(super) const fn decide(self, life: Life, seen: Seen) -> Action {
        let Seen { is_running, is_target } = seen;
        match self {
            Operation::Start(_) if life.is_shut() => Action::Refuse,
            Operation::Start(_) if is_running && life.is_being_cancelled() => {
                Action::RefuseOnce(life.refused())
            }
            Operation::Start(IfPending::Leave) if life.is_pending() => Action::Keep,
            Operation::Start(_) if is_running || is_target => Action::Arm,
            Operation::Start(_) => Action::Move,
            Operation::Restart if life.is_pending() || life.is_shut() => Action::Keep,
            Operation::Restart if life.is_being_cancelled() => Action::RefuseOnce(life.refused()),
            Operation::Restart => Action::Arm,
            Operation::TryCancel if is_running => Action::Keep,
            Operation::CancelAndWait | Operation::CancelSingleShot if is_running => {
                Action::Disarm(life.idle().with_canceller())
            }
            Operation::Cancel
            | Operation::TryCancel
            | Operation::CancelAndWait
            | Operation::CancelSingleShot => Action::Disarm(life.idle()),
            Operation::Shutdown => Action::Disarm(life.idle().shut()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::CpuId;

    const IDLE: Life = Life::FRESH.migrating_to(CpuId(1)).idle();
    const PENDING: Life = IDLE.armed();
    const CANCELLED: Life = PENDING.idle().with_canceller();

    const OPERATIONS: [Operation; 9] = [
        Operation::Start(IfPending::Rearm),
        Operation::Start(IfPending::Reduce),
        Operation::Start(IfPending::Leave),
        Operation::Restart,
        Operation::Cancel,
        Operation::TryCancel,
        Operation::CancelAndWait,
        Operation::CancelSingleShot,
        Operation::Shutdown,
    ];

    /// For each state: what each operation decides if the callback does not run, and if it does.
    type Row = [(Life, [Action; 9], [Action; 9]); 5];

    #[test]
    fn decisions_in_every_state() {
        use Action::{Arm, Disarm, Keep, Refuse, RefuseOnce};
        let off = |life: Life| Disarm(life.idle());
        let waits = |life: Life| Disarm(life.idle().with_canceller());
        let shut = |life: Life| Disarm(life.idle().shut());
        // What the five cancelling operations do if the callback does not run, and if it does. (For
        // a pending timer, the caller of `CancelSingleShot` passes `false` without checking this.)
        let idle = |life| [off(life), off(life), off(life), off(life), shut(life)];
        let runs = |life| [off(life), Keep, waits(life), waits(life), shut(life)];
        let row = |starts: [Action; 4], cancels: [Action; 5]| {
            core::array::from_fn(|nth| if nth < 4 { starts[nth] } else { cancels[nth - 4] })
        };
        let table: Row = [
            (IDLE, row([Arm; 4], idle(IDLE)), row([Arm; 4], runs(IDLE))),
            (
                PENDING,
                row([Arm, Arm, Keep, Keep], idle(PENDING)),
                row([Arm, Arm, Keep, Keep], runs(PENDING)),
            ),
            (
                CANCELLED,
                // Only a running callback restarts its timer.
                row([Arm, Arm, Arm, RefuseOnce(CANCELLED.refused())], idle(CANCELLED)),
                row([RefuseOnce(CANCELLED.refused()); 4], runs(CANCELLED)),
            ),
            (
                IDLE.shut(),
                row([Refuse, Refuse, Refuse, Keep], idle(IDLE.shut())),
                row([Refuse, Refuse, Refuse, Keep], runs(IDLE.shut())),
            ),
            (
                CANCELLED.shut(),
                row([Refuse, Refuse, Refuse, Keep], idle(CANCELLED.shut())),
                row([Refuse, Refuse, Refuse, Keep], runs(CANCELLED.shut())),
            ),
        ];
        for (life, idle, running) in table {
            for (is_running, expected) in [(false, idle), (true, running)] {
                let seen = Seen { is_running, is_target: true };
                let found = OPERATIONS.map(|operation| operation.decide(life, seen));
                assert_eq!(found, expected, "{life:?}, running: {is_running}");
            }
        }
    }
}
