//! Where timer interrupts begin and end.
//!
//! | the trace has | begins | ends |
//! |---|---|---|
//! | `local_timer_entry`, `local_timer_exit` | there | there, or where its CPU is seen elsewhere |
//! | `local_timer_entry` alone | there | with its last callback |
//! | neither | with the first callback | with its last callback |
//!
//! In the latter cases callbacks belong together if the handler went by the same present for
//! them: the kernel reads it once and prints it with each. A start that follows a callback is
//! the restart that the callback asked for if it is of the same timer.

use super::{Item, ItemKind, Moment, Op, Script};
use crate::read::{Event, EventKind, Record, TimerAddr, Trace};
use tickless_core::time::{CpuId, Ns};

/// Presents that differ by no more than this are one: clocks are compared to some microseconds.
const SAME_PRESENT: Ns = Ns::from_us(20);

/// The restart that a callback asked for follows its return within this; if no returns were
/// recorded, its beginning.
const RESTART_MAX: Ns = Ns::from_us(100);

/// No handler without a recorded end lasts longer.
const LASTS_MAX: Ns = Ns::from_ms(1);

/// The interrupt that a CPU is in.
#[derive(Debug)]
pub(super) struct Interrupt {
    pub(super) began: Ns,
    record: u32,
    /// The latest present that the handler is known to have gone by.
    pub(super) now: Ns,
    /// The earliest expiry of what it expired.
    pub(super) due: Ns,
    pub(super) ops: Vec<Op>,
    ends: Ends,
    callback: Callback,
}

/// What a trace says of ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    /// Of interrupts.
    pub(super) interrupt: End,
    /// Of callbacks. Without them a callback is taken to do nothing but to restart its timer.
    pub(super) callback: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Recorded,
    Implied,
}

impl Ends {
    pub(super) fn of(trace: &Trace) -> Ends {
        let end = |kind| if trace.count(kind) > 0 { End::Recorded } else { End::Implied };
        Ends {
            interrupt: end(EventKind::LocalTimerExit),
            callback: end(EventKind::HrtimerExpireExit),
        }
    }

    /// Of an interrupt whose beginning was not recorded.
    pub(super) fn without_interrupt(self) -> Ends {
        Ends { interrupt: End::Implied, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
enum Callback {
    NoneYet,
    Runs,
    Returned(TimerAddr, Ns),
}

impl Interrupt {
    pub(super) fn new((began, record): Moment, ends: Ends) -> Interrupt {
        let (due, ops, callback) = (Ns::NEVER, Vec::new(), Callback::NoneYet);
        Interrupt { began, record, now: began, due, ops, ends, callback }
    }

    /// Does this record of the same CPU still belong to the interrupt? `now` is the present
    /// that an expiry went by.
    pub(super) fn holds(&self, record: &Record, at: Ns, now: Option<Ns>) -> bool {
        if record.context.in_hard_irq() == Some(false) {
            return false;
        }
        if self.ends.interrupt == End::Recorded {
            // These are no work of an interrupt: its end was lost.
            return !matches!(
                record.event,
                Event::SchedSwitch { .. } | Event::CpuIdle { .. } | Event::TimerExpireEntry { .. }
            );
        }
        if at.since(self.began) > LASTS_MAX {
            return false;
        }
        match (record.event, self.callback) {
            (Event::WriteMsr { .. } | Event::HrtimerExpireExit { .. }, _) => true,
            (Event::HrtimerExpireEntry { .. }, Callback::NoneYet) => true,
            (Event::HrtimerExpireEntry { .. }, _) => now.is_some_and(|now| {
                now.since(self.now) <= SAME_PRESENT && self.now.since(now) <= SAME_PRESENT
            }),
            (_, Callback::Runs) => true,
            (Event::HrtimerStart { timer, .. }, Callback::Returned(last, since))
                if timer == last && at.since(since) <= RESTART_MAX =>
            {
                true
            }
            // It may not have returned, if that is not recorded.
            (_, Callback::Returned(..)) => {
                self.ends.callback == End::Implied && record.context.in_hard_irq() == Some(true)
            }
            (_, Callback::NoneYet) => false,
        }
    }

    /// Takes note of where the handler stands.
    pub(super) fn follow(&mut self, record: &Record, at: Ns, now: Option<Ns>) {
        match record.event {
            Event::HrtimerExpireEntry { timer, .. } => {
                self.callback = match self.ends.callback {
                    End::Recorded => Callback::Runs,
                    End::Implied => Callback::Returned(timer, at),
                };
                // The present was read before it was printed, and printed times are cut.
                let printed_max = at.after(Ns::from_us(1));
                self.now = self.now.max(now.unwrap_or(Ns::ZERO).min(printed_max));
            }
            Event::HrtimerExpireExit { timer } => self.callback = Callback::Returned(timer, at),
            _ => {}
        }
    }

    pub(super) fn moment(&self) -> Moment {
        (self.began, self.record)
    }

    /// What the interrupt was becomes an item.
    pub(super) fn finish(self, cpu: CpuId, script: &mut Script) {
        let kind = ItemKind::Interrupt { now: self.now, due: self.due };
        script.push(self.moment(), cpu, kind, &self.ops);
    }
}

impl Item {
    pub(in crate::replay) fn is_interrupt(&self) -> bool {
        matches!(self.kind, ItemKind::Interrupt { .. })
    }
}
