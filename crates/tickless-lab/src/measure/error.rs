//! Why something could not be measured, and what to do about it.

use std::fmt;
use std::io;
use tickless::driver::StartTimersError;

/// Why something could not be measured.
#[derive(Debug)]
pub enum MeasureError {
    /// The timers to be measured did not start.
    Timers(StartTimersError),
    /// The system refused something.
    System {
        /// What was wanted, with what to do if it is refused.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A thread died.
    Thread {
        /// What it was for.
        what: &'static str,
    },
}

impl MeasureError {
    /// For `map_err`: what was wanted of the system, and what to do if it is refused.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> MeasureError {
        move |error| MeasureError::System { what, error: error.into() }
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::Timers(error) => error.fmt(f),
            MeasureError::System { what, error } => write!(f, "{what} ({error})"),
            MeasureError::Thread { what } => {
                write!(f, "the thread {what} died; its message is above. Try again")
            }
        }
    }
}

impl std::error::Error for MeasureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MeasureError::Timers(error) => Some(error),
            MeasureError::System { error, .. } => Some(error),
            MeasureError::Thread { .. } => None,
        }
    }
}

impl From<StartTimersError> for MeasureError {
    fn from(error: StartTimersError) -> MeasureError {
        MeasureError::Timers(error)
    }
}
