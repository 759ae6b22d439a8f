//! What a bandwidth group is given, and what it cannot be given.

use crate::bandwidth::period::{PERIOD_LIMIT, PERIOD_MIN};
use crate::time::Ns;
use core::fmt;
use core::time::Duration;

/// How much a group may use, and how it is handed out.
///
/// Amounts are in a unit of the user's: nanoseconds of CPU time, or permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What every period brings.
    pub quota: u64,
    /// How often the quota is refilled.
    pub period: Ns,
    /// How much of what a period leaves over may be used later. At most `quota + extra` are held
    /// at any time.
    pub extra: u64,
    /// How much a member takes at a time, to spend without asking.
    pub slice: u64,
    /// How fast those that wait are let go.
    pub release: Release,
}

/// How fast those that wait are let go after a refill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// How many at once, at least one.
    pub batch: u32,
    /// How long until the next as many.
    pub gap: Duration,
}

impl Release {
    /// All that there is quota for, at once: the herd.
    pub const TOGETHER: Release = Release { batch: u32::MAX, gap: Duration::ZERO };
}

/// The most that quota and extra may add up to.
pub const AMOUNT_MAX: u64 = 1 << 58;

/// Why there can be no such group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// Nothing could ever run.
    QuotaZero,
    /// Nobody could ever take anything.
    SliceZero,
    /// Nobody could ever be let go.
    BatchZero,
    /// Shorter than [`PERIOD_MIN`].
    PeriodTooShort(Duration),
    /// Longer than [`PERIOD_LIMIT`].
    PeriodTooLong(Duration),
    /// The first slice would be more than there is.
    QuotaBelowSlice {
        /// What a period brings.
        quota: u64,
        /// What a member takes at a time.
        slice: u64,
    },
    /// More CPU time than there are CPUs: it would never throttle.
    QuotaAboveMachine {
        /// What a period brings.
        quota: u64,
        /// What all CPUs can do in a period.
        capacity: u64,
    },
    /// Quota and extra add up to more than [`AMOUNT_MAX`].
    TooMuch,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::QuotaZero => f.write_str("a quota of zero stops everything for ever"),
            SettingsError::SliceZero => f.write_str("a slice of zero hands nothing out; use 1"),
            SettingsError::BatchZero => {
                f.write_str("batches of zero let nobody go; release at least one at a time")
            }
            SettingsError::PeriodTooShort(period) => {
                write!(f, "a period of {period:?} is under {PERIOD_MIN:?}; scale period and quota")
            }
            SettingsError::PeriodTooLong(period) => {
                write!(f, "a period of {period:?} is over {PERIOD_LIMIT:?}")
            }
            SettingsError::QuotaBelowSlice { quota, slice } => write!(
                f,
                "a slice of {slice} is more than the quota of {quota}; choose a smaller slice"
            ),
            SettingsError::QuotaAboveMachine { quota, capacity } => write!(
                f,
                "a quota of {quota} ns in a period in which all CPUs together do {capacity} ns \
                 never throttles; leave the limit out"
            ),
            SettingsError::TooMuch => write!(f, "quota and extra exceed {AMOUNT_MAX} together"),
        }
    }
}

impl core::error::Error for SettingsError {}

impl Settings {
    /// The most that is ever held, and that can be asked for at once.
    pub fn most(&self) -> u64 {
        self.quota.saturating_add(self.extra)
    }

    /// Can there be such a group?
    pub fn check(&self) -> Result<(), SettingsError> {
        let Settings { quota, period, slice, release, .. } = *self;
        if quota == 0 {
            return Err(SettingsError::QuotaZero);
        }
        if slice == 0 {
            return Err(SettingsError::SliceZero);
        }
        if release.batch == 0 {
            return Err(SettingsError::BatchZero);
        }
        if period < PERIOD_MIN {
            return Err(SettingsError::PeriodTooShort(period.to_duration()));
        }
        if period > PERIOD_LIMIT {
            return Err(SettingsError::PeriodTooLong(period.to_duration()));
        }
        if slice > quota {
            return Err(SettingsError::QuotaBelowSlice { quota, slice });
        }
        if self.most() > AMOUNT_MAX {
            return Err(SettingsError::TooMuch);
        }
        Ok(())
    }

    /// The same for a quota of CPU time on so many CPUs.
    pub fn check_cpu_time(&self, cpus: u32) -> Result<(), SettingsError> {
        self.check()?;
        let capacity = self.period.0.saturating_mul(u64::from(cpus));
        if self.quota > capacity {
            return Err(SettingsError::QuotaAboveMachine { quota: self.quota, capacity });
        }
        Ok(())
    }
}
