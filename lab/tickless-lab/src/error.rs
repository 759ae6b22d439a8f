//! Why a measurement or a computation failed, and what the user can do.

use std::error::Error;
use std::io;
use tickless::driver::StartTimersError;

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("{what}")]
    Request { what: String },
    #[error(transparent)]
    Timers(#[from] StartTimersError),
    #[error("{what} ({error})")]
    System {
        /// The request that was refused, with what the user can do.
        what: &'static str,
        error: io::Error,
    },
    #[error("the text of the study {study} names {name}, which it has not measured. Report this")]
    Missing { study: &'static str, name: String },
    #[error("the thread {what} died; its message is above. Try again")]
    Thread { what: &'static str },
}

impl LabError {
    /// Returns a function for `map_err` that wraps an error of the operating system. `what`
    /// describes what was refused, and what the user can do about that.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> LabError {
        move |error| LabError::System { what, error: error.into() }
    }

    /// Returns a function for `map_err` that wraps any error. `what` is as in [`LabError::system`].
    pub fn other<E: Into<Box<dyn Error + Send + Sync>>>(
        what: &'static str,
    ) -> impl FnOnce(E) -> LabError {
        move |error| LabError::System { what, error: io::Error::other(error) }
    }
}
