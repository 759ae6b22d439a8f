//! Why a study could not be run, and what to do about it.

use crate::measure::MeasureError;
use std::io;
use thiserror::Error;
use tickless::driver::StartTimersError;

#[derive(Debug, Error)]
pub enum StudyError {
    #[error("{what}")]
    Request {
        /// What is wrong, and what to request instead.
        what: String,
    },
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

impl StudyError {
    /// For `map_err`: makes an error of the operating system's. `what` names what the study needs
    /// of the system, and what the user can do if it is refused.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> StudyError {
        move |error| MeasureError::system(what)(error).into()
    }

    /// Returns whether the error is in the request, so that the user must change the command line.
    pub fn is_usage(&self) -> bool {
        matches!(self, StudyError::Request { .. })
    }
}

impl From<StartTimersError> for StudyError {
    fn from(error: StartTimersError) -> StudyError {
        StudyError::Measure(error.into())
    }
}
