//! What can be wrong with a set of timers.

use serde::Serialize;
use thiserror::Error;

/// A promise that was broken. Times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize)]
pub enum Fault {
    /// A timer fired before the first time at which it is allowed to fire.
    #[error("timer {key} fires at {now}, {} ns before its first time", first - now)]
    Early { key: u32, now: u64, first: u64 },
    /// A timer fired too late: not in the first call of `advance` that had to fire it.
    #[error("timer {key} must fire by {last}, and fires {} ns later", fired - last)]
    Late { key: u32, fired: u64, last: u64 },
    /// A timer did not fire, however far time was moved.
    #[error("timer {key} must fire by {last}, and never fires")]
    Lost { key: u32, last: u64 },
    /// A timer fired that was not pending: twice, after it was cancelled, or at its old deadline.
    #[error("timer {key} fires at {now}, and is not pending")]
    NotPending { key: u32, now: u64 },
    /// A timer fired after a timer with a later deadline, in the same call of `advance`.
    #[error("timer {key} fires after timer {after}, whose deadline is later")]
    OutOfOrder { key: u32, after: u32 },
    /// `cancel` returned the wrong answer.
    #[error("cancel of timer {key} returns {returned}")]
    CancelResult { key: u32, returned: bool },
    /// `next_event` returned `None`, or too late a time: a pending timer must fire earlier.
    #[error("next_event returns {}, but timer {key} must fire by {last}", time(*returned))]
    NextEventLate { key: u32, returned: Option<u64>, last: u64 },
    /// `next_event` returned a time, although no timer is due then.
    #[error("next_event returns {returned}, but {}", due(*first))]
    NextEventForNothing { returned: u64, first: Option<u64> },
    /// A driver sleeps until the time of `next_event` again and again, and never fires a timer.
    #[error("at {now}, next_event asks for {rounds} calls of advance that fire nothing")]
    Stuck { now: u64, rounds: u32 },
    /// A call panicked.
    #[error("a call panics: {message}")]
    Panicked { message: String },
    /// A call did not return within the time limit.
    #[error("a call does not return within {seconds} s")]
    Hung { seconds: u64 },
}

fn time(returned: Option<u64>) -> String {
    returned.map_or("none".to_string(), |returned| returned.to_string())
}

fn due(first: Option<u64>) -> String {
    first.map_or("no timer is pending".to_string(), |at| format!("the first timer is due at {at}"))
}
