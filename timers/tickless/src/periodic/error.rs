//! Why a periodic timer was not started.

use std::fmt;
use std::time::Duration;
use tickless_core::bases::StartError;
use tickless_core::phase::PhaseError;

/// Why a periodic timer was not started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PeriodError {
    /// The period is zero.
    Zero,
    /// The period is longer than 292 years, so the timer could never expire twice at its phase.
    TooLong(Duration),
    /// The timer has a fixed phase that is not shorter than its period.
    PhaseBeyondPeriod {
        /// The requested phase.
        phase: Duration,
        /// The period of the timer.
        period: Duration,
    },
    /// The timer could not be armed.
    Start(StartError),
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeriodError::Zero => f.write_str("a period of zero would never end; use at least 1 ns"),
            PeriodError::TooLong(period) => {
                write!(f, "a period of {period:?} never comes twice; use at most 292 years")
            }
            PeriodError::PhaseBeyondPeriod { phase, period } => {
                write!(f, "a phase of {phase:?} is not below its period of {period:?}")
            }
            PeriodError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PeriodError {}

impl From<PhaseError> for PeriodError {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::PeriodTooLong(period) => PeriodError::TooLong(period),
            PhaseError::BeyondPeriod { phase, period } => {
                PeriodError::PhaseBeyondPeriod { phase, period }
            }
            _ => PeriodError::Zero,
        }
    }
}

impl From<StartError> for PeriodError {
    fn from(error: StartError) -> Self {
        PeriodError::Start(error)
    }
}
