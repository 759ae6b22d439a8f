//! Where timer interrupts begin and end.
//!
//! | the trace has | begins | ends |
//! |---|---|---|
//! | `local_timer_entry`, `local_timer_exit` | there | there, or where its CPU is seen elsewhere |
//! | `local_timer_entry` alone | there | with its last callback |
//! | neither | with the first callback | with its last callback |
//!
//! In the latter two cases callbacks belong together if the handler used one current time for
//! them: the kernel reads it once, and prints it with each. A start that follows a callback is the
//! restart that the callback asked for if it is of the same timer.

use super::{Moment, Op};
use crate::read::{Event, EventKind, Record, TimerAddr, Trace};
use tickless_core::time::Ns;

/// Current times that differ by no more than this are one: clocks are compared to some
/// microseconds.
const SAME_NOW: Ns = Ns::from_us(20);

/// The restart that a callback asked for follows its return within this; if no returns were
/// recorded, its beginning.
const RESTART_MAX: Ns = Ns::from_us(100);

/// No handler without a recorded end lasts longer.
const LASTS_MAX: Ns = Ns::from_ms(1);

/// The interrupt that a CPU is in.
#[derive(Debug)]
pub(super) struct Interrupt {
    /// When it began.
    pub(super) moment: Moment,
    /// The latest current time that the handler is known to have used.
    pub(super) now: Ns,
    /// The earliest expiry of the timers that it expired.
    pub(super) due: Ns,
    pub(super) ops: Vec<Op>,
    ends: Ends,
    callback: Callback,
}

/// The ends that a trace has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    pub(super) of_interrupts: bool,
    /// Without these, a callback is assumed to do nothing but restart its timer.
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
    pub(super) fn new(moment: Moment, ends: Ends) -> Interrupt {
        let (due, ops, callback) = (Ns::NEVER, Vec::new(), Callback::NoneYet);
        Interrupt { moment, now: moment.0, due, ops, ends, callback }
    }

    /// Returns whether this record of the same CPU belongs to the interrupt. `now` is the current
    /// time with which the handler expired a timer.
    pub(super) fn holds(&self, record: &Record, at: Ns, now: Option<Ns>) -> bool {
        if record.context.in_hard_irq() == Some(false) {
            return false;
        }
        if self.ends.of_interrupts {
            // An interrupt does none of these, so its end was lost.
            return !matches!(
                record.event,
                Event::SchedSwitch { .. } | Event::CpuIdle { .. } | Event::TimerExpireEntry { .. }
            );
        }
        if at.since(self.moment.0) > LASTS_MAX {
            return false;
        }
        match (record.event, self.callback) {
            (Event::WriteMsr { .. } | Event::HrtimerExpireExit { .. }, _) => true,
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
            // The callback may still run if its end is not recorded.
            (_, Callback::Returned(..)) => {
                !self.ends.of_callbacks && record.context.in_hard_irq() == Some(true)
            }
            (_, Callback::NoneYet) => false,
        }
    }

    /// Follows the handler.
    pub(super) fn follow(&mut self, record: &Record, at: Ns, now: Option<Ns>) {
        match record.event {
            Event::HrtimerExpireEntry { timer, .. } => {
                self.callback = match self.ends.of_callbacks {
                    true => Callback::Runs,
                    false => Callback::Returned(timer, at),
                };
                // The handler read the time before it was printed, and printed times are cut.
                let printed_max = at.after(Ns::from_us(1));
                self.now = self.now.max(now.unwrap_or(Ns::ZERO).min(printed_max));
            }
            Event::HrtimerExpireExit { timer } => self.callback = Callback::Returned(timer, at),
            _ => {}
        }
    }
}
