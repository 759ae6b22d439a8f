//! What can be wrong with a set of timers.

use core::fmt;
use serde::Serialize;

/// A promise that was broken. Times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum Fault {
    /// A timer fired before the first time at which it may fire.
    Early { key: u32, now: u64, first: u64 },
    /// A timer fired too late: not in the first call of `advance` that had to fire it.
    Late { key: u32, fired: u64, last: u64 },
    /// A timer did not fire, however far time was moved.
    Lost { key: u32, last: u64 },
    /// A timer fired that was not pending: twice, after it was cancelled, or at its old deadline.
    NotPending { key: u32, now: u64 },
    /// A timer fired after a timer with a later deadline, in the same call of `advance`.
    OutOfOrder { key: u32, after: u32 },
    /// `cancel` returned the wrong answer.
    CancelResult { key: u32, returned: bool },
    /// `next_event` returned `None`, or too late a time: a pending timer must fire earlier.
    NextEventLate { key: u32, returned: Option<u64>, last: u64 },
    /// `next_event` returned a time, although no timer is due then.
    NextEventForNothing { returned: u64, first: Option<u64> },
    /// A driver sleeps until the time of `next_event` again and again, and never fires a timer.
    Stuck { now: u64, rounds: u32 },
    /// A call panicked.
    Panicked { message: String },
    /// A call did not return within the time limit.
    Hung { seconds: u64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Early { key, now, first } => {
                write!(f, "timer {key} fires at {now}, {} ns before its first time", first - now)
            }
            Fault::Late { key, fired, last } => {
                write!(f, "timer {key} must fire by {last}, and fires {} ns later", fired - last)
            }
            Fault::Lost { key, last } => {
                write!(f, "timer {key} must fire by {last}, and never fires")
            }
            Fault::NotPending { key, now } => {
                write!(f, "timer {key} fires at {now}, and is not pending")
            }
            Fault::OutOfOrder { key, after } => {
                write!(f, "timer {key} fires after timer {after}, whose deadline is later")
            }
            Fault::CancelResult { key, returned } => {
                write!(f, "cancel of timer {key} returns {returned}")
            }
            Fault::NextEventLate { key, returned: Some(returned), last } => {
                write!(f, "next_event returns {returned}, but timer {key} must fire by {last}")
            }
            Fault::NextEventLate { key, returned: None, last } => {
                write!(f, "next_event returns none, but timer {key} must fire by {last}")
            }
            Fault::NextEventForNothing { returned, first: Some(first) } => {
                write!(f, "next_event returns {returned}, but the first timer is due at {first}")
            }
            Fault::NextEventForNothing { returned, first: None } => {
                write!(f, "next_event returns {returned}, but no timer is pending")
            }
            Fault::Stuck { now, rounds } => {
                write!(
                    f,
                    "at {now}, next_event asks for {rounds} calls of advance that fire nothing"
                )
            }
            Fault::Panicked { message } => write!(f, "a call panics: {message}"),
            Fault::Hung { seconds } => write!(f, "a call does not return within {seconds} s"),
        }
    }
}
