//! Why a study could not be run, and what to do about it.

use super::World;
use crate::measure::MeasureError;
use std::fmt;
use std::io;
use tickless::driver::StartTimersError;

/// Why a study could not be run.
#[derive(Debug)]
pub enum StudyError {
    /// It does not exist in that world.
    NotInThisWorld {
        /// The study.
        study: &'static str,
        /// Where it was asked for.
        asked: World,
        /// Where it exists.
        exists: World,
    },
    /// What was asked for cannot be done by this study.
    Request {
        /// What is wrong, and what to ask for instead.
        what: String,
    },
    /// Something could not be measured.
    Measure(MeasureError),
}

impl StudyError {
    /// For `map_err`: what the study wanted of the system, and what to do if it is refused.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> StudyError {
        move |error| MeasureError::system(what)(error).into()
    }

    /// Is it the command line that has to be changed?
    pub fn is_usage(&self) -> bool {
        matches!(self, StudyError::NotInThisWorld { .. } | StudyError::Request { .. })
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::NotInThisWorld { study, asked, exists } => write!(
                f,
                "study {study} has no --{} form; run it with --{}",
                asked.name(),
                exists.name()
            ),
            StudyError::Request { what } => f.write_str(what),
            StudyError::Measure(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StudyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StudyError::Measure(error) => Some(error),
            _ => None,
        }
    }
}

impl From<MeasureError> for StudyError {
    fn from(error: MeasureError) -> StudyError {
        StudyError::Measure(error)
    }
}

impl From<StartTimersError> for StudyError {
    fn from(error: StartTimersError) -> StudyError {
        StudyError::Measure(error.into())
    }
}
