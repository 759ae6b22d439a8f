//! Why a periodic timer was not started.

use std::fmt;
use tickless_core::bases::StartError;
use tickless_core::phase::PhaseError;

/// Why a periodic timer was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeriodError {
    /// The period is zero.
    Zero,
    /// The phase is not available with this period.
    Phase(PhaseError),
    /// The timer could not be armed.
    Start(StartError),
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeriodError::Zero => f.write_str("a period of zero would never end; use at least 1 ns"),
            PeriodError::Phase(error) => error.fmt(f),
            PeriodError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PeriodError {}

impl From<PhaseError> for PeriodError {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::PeriodZero => PeriodError::Zero,
            error => PeriodError::Phase(error),
        }
    }
}

impl From<StartError> for PeriodError {
    fn from(error: StartError) -> Self {
        PeriodError::Start(error)
    }
}
