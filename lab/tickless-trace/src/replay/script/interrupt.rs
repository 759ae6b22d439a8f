//! Finds where timer interrupts begin and end.
//!
//! | the trace has | the interrupt begins | the interrupt ends |
//! |---|---|---|
//! | `local_timer_entry`, `local_timer_exit` | at the entry | at the exit, or when it was left |
//! | `local_timer_entry` alone | at the entry | with its last callback |
//! | neither | with the first callback | with its last callback |
//!
//! In the latter two cases, callbacks belong to one interrupt if the handler used the same current
//! time for them, which the kernel prints with each callback.

use super::{Moment, Op};
use crate::read::{Event, EventKind, Record, TimerAddr, Trace};
use tickless_core::time::Ns;

/// Two current times that differ by no more than this are taken for the same one, because the
/// clocks are related only to some microseconds.
const SAME_NOW: Ns = Ns::from_us(20);

/// The restart that a callback asked for follows the callback's return within this time. If returns
/// are not recorded, it follows the callback's beginning within this time.
const RESTART_MAX: Ns = Ns::from_us(100);

/// If the end of an interrupt is not recorded, it is assumed to last no longer than this.
const LASTS_MAX: Ns = Ns::from_ms(1);

#[derive(Debug)]
pub(super) struct Interrupt {
    pub(super) moment: Moment,
    /// The latest reading of the clock with which the handler is known to have expired timers.
    pub(super) now: Ns,
    /// The time for which the device was programmed, or the earliest expiry of the timers that the
    /// interrupt expired; [`Ns::NEVER`] if unknown.
    pub(super) due: Ns,
    pub(super) ops: Vec<Op>,
    ends: Ends,
    callback: Callback,
}

/// Whether the trace records the ends of interrupts, and the ends of callbacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    pub(super) of_interrupts: bool,
    /// If the trace does not record the ends of callbacks, a callback is assumed to do nothing but
    /// restart its timer.
    pub(super) of_callbacks: bool,
}

impl Ends {
    pub(super) fn of(trace: &Trace) -> Ends {
        Ends {
            of_interrupts: trace.count(EventKind::LocalTimerExit) > 0,
            of_callbacks: trace.count(EventKind::HrtimerExpireExit) > 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Callback {
    NoneYet,
    Runs,
    Returned(TimerAddr, Ns),
}

impl Interrupt {
    pub(super) fn new(moment: Moment, due: Ns, ends: Ends) -> Interrupt {
        let (ops, callback) = (Vec::new(), Callback::NoneYet);
        Interrupt { moment, now: moment.0, due, ops, ends, callback }
    }

    /// Returns whether this record of the interrupt's CPU belongs to the interrupt. `now` is the
    /// current time with which the handler expired a timer.
    pub(super) fn holds(&self, record: &Record, at: Ns, now: Option<Ns>) -> bool {
        if record.context.in_hard_irq() == Some(false) {
            return false;
        }
        if self.ends.of_interrupts {
            // These events do not occur in a timer interrupt: before them, the interrupt has ended,
            // and the record of its end was lost.
            return !matches!(
                record.event,
                Event::SchedSwitch { .. } | Event::CpuIdle { .. } | Event::TimerExpireEntry { .. }
            );
        }
        if at.since(self.moment.0) > LASTS_MAX {
            return false;
        }
        match (record.event, self.callback) {
            (
                Event::WriteMsr { .. }
                | Event::HrtimerRearm { .. }
                | Event::HrtimerExpireExit { .. },
                _,
            ) => true,
            (Event::HrtimerExpireEntry { .. }, Callback::NoneYet) => true,
            (Event::HrtimerExpireEntry { .. }, _) => now.is_some_and(|now| {
                now.since(self.now) <= SAME_NOW && self.now.since(now) <= SAME_NOW
            }),
            (_, Callback::Runs) => true,
            (Event::HrtimerStart { timer, .. }, Callback::Returned(last, since))
                if timer == last && at.since(since) <= RESTART_MAX =>
            {
                true
            }
            // If the ends of callbacks are not recorded, the callback perhaps still runs.
            (_, Callback::Returned(..)) => {
                !self.ends.of_callbacks && record.context.in_hard_irq() == Some(true)
            }
            (_, Callback::NoneYet) => false,
        }
    }

    /// Updates the interrupt's callback and current time from a record inside the interrupt.
    pub(super) fn follow(&mut self, record: &Record, at: Ns, now: Option<Ns>) {
        match record.event {
            Event::HrtimerExpireEntry { timer, .. } => {
                self.callback = match self.ends.of_callbacks {
                    true => Callback::Runs,
                    false => Callback::Returned(timer, at),
                };
                // The handler read the time before the record was printed, so `now` is not after
                // `at`. Printed times are cut to microseconds, so allow one microsecond more.
                let printed_max = at.after(Ns::from_us(1));
                self.now = self.now.max(now.unwrap_or(Ns::ZERO).min(printed_max));
            }
            Event::HrtimerExpireExit { timer } => self.callback = Callback::Returned(timer, at),
            _ => {}
        }
    }
}
