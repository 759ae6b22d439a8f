//! Why something could not be measured, and what to do about it.

use std::io;
use thiserror::Error;
use tickless::driver::StartTimersError;

#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Timers(#[from] StartTimersError),
    #[error("{what} ({error})")]
    System {
        /// The request that was refused, with what the user can do.
        what: &'static str,
        error: io::Error,
    },
    #[error("the thread {what} died; its message is above. Try again")]
    Thread { what: &'static str },
}

impl MeasureError {
    /// For `map_err`: makes an error of the operating system's. `what` names the request, and what
    /// the user can do if it is refused.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> MeasureError {
        move |error| MeasureError::System { what, error: error.into() }
    }
}
