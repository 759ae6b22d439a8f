//! The settings of a bandwidth group, and their limits.

use crate::bandwidth::period::{PERIOD_LIMIT, PERIOD_MIN};
use crate::time::Ns;
use core::fmt;
use core::time::Duration;

/// How much a group can use, and how members get it.
///
/// The caller chooses the unit of amounts: nanoseconds of CPU time, or permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The amount that each refill adds.
    pub quota: u64,
    /// How often the quota is refilled.
    pub period: Ns,
    /// The greatest unused amount from earlier periods that the group keeps. The group holds at
    /// most `quota + extra` at any time.
    pub extra: u64,
    /// The amount that a member takes at a time, to spend without further calls.
    pub slice: u64,
    /// How fast waiting members are released.
    pub release: Release,
}

/// How fast waiting members are released after a refill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// The number of members that are released at once; at least one.
    pub batch: u32,
    /// The time until the next batch.
    pub gap: Duration,
}

impl Release {
    /// Releases at once every member for which the pool has enough.
    pub const TOGETHER: Release = Release { batch: u32::MAX, gap: Duration::ZERO };
}

/// The largest sum of quota and extra.
pub const AMOUNT_MAX: u64 = 1 << 58;

/// Why a bandwidth group was not started: bad [`Settings`], or a refill timer that cannot run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BandwidthError {
    /// The quota is zero: no member could ever continue.
    QuotaZero,
    /// The slice is zero: no member could ever take anything.
    SliceZero,
    /// The batch is zero: no waiting member could ever be released.
    BatchZero,
    /// The period is shorter than [`PERIOD_MIN`].
    PeriodTooShort(Duration),
    /// The period is longer than [`PERIOD_LIMIT`].
    PeriodTooLong(Duration),
    /// The slice is larger than the quota.
    QuotaBelowSlice {
        /// The amount that each refill adds.
        quota: u64,
        /// The amount that a member takes at a time.
        slice: u64,
    },
    /// The quota is more CPU time than the machine has in a period: no worker would ever wait.
    QuotaAboveMachine {
        /// The amount that each refill adds.
        quota: u64,
        /// The CPU time of all CPUs in a period.
        capacity: u64,
    },
    /// The sum of quota and extra is greater than [`AMOUNT_MAX`].
    TooMuch,
    /// The refill timer has a fixed phase (offset in its period) that is not below the period.
    PhaseBeyondPeriod {
        /// The requested phase.
        phase: Duration,
        /// The period of the refills.
        period: Duration,
    },
    /// The refill timer cannot be armed: in a forked child, the timers belong to its parent.
    NoTimers,
}

impl fmt::Display for BandwidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BandwidthError::QuotaZero => {
                f.write_str("a quota of zero lets nothing continue; use at least 1")
            }
            BandwidthError::SliceZero => {
                f.write_str("with a slice of zero no member gets anything; use 1")
            }
            BandwidthError::BatchZero => {
                f.write_str("with a batch of zero no member is released; use at least 1")
            }
            BandwidthError::PeriodTooShort(period) => {
                write!(f, "a period of {period:?} is under {PERIOD_MIN:?}; scale period and quota")
            }
            BandwidthError::PeriodTooLong(period) => {
                write!(f, "a period of {period:?} is over {PERIOD_LIMIT:?}")
            }
            BandwidthError::QuotaBelowSlice { quota, slice } => write!(
                f,
                "a slice of {slice} is more than the quota of {quota}; choose a smaller slice"
            ),
            BandwidthError::QuotaAboveMachine { quota, capacity } => write!(
                f,
                "a quota of {quota} ns in a period in which all CPUs together do {capacity} ns \
                 never throttles; leave the limit out"
            ),
            BandwidthError::TooMuch => write!(f, "quota and extra exceed {AMOUNT_MAX} together"),
            BandwidthError::PhaseBeyondPeriod { phase, period } => {
                write!(f, "a phase of {phase:?} is not below its period of {period:?}")
            }
            BandwidthError::NoTimers => {
                f.write_str("the timers belong to the parent process; start timers in the child")
            }
        }
    }
}

impl core::error::Error for BandwidthError {}

impl Settings {
    /// Returns the largest amount that the group holds, and that a member can ask for at once.
    pub fn most(&self) -> u64 {
        self.quota.saturating_add(self.extra)
    }

    /// Returns an error if no group can have these settings.
    pub fn check(&self) -> Result<(), BandwidthError> {
        let Settings { quota, period, slice, release, .. } = *self;
        if quota == 0 {
            return Err(BandwidthError::QuotaZero);
        }
        if slice == 0 {
            return Err(BandwidthError::SliceZero);
        }
        if release.batch == 0 {
            return Err(BandwidthError::BatchZero);
        }
        if period < PERIOD_MIN {
            return Err(BandwidthError::PeriodTooShort(period.to_duration()));
        }
        if period > PERIOD_LIMIT {
            return Err(BandwidthError::PeriodTooLong(period.to_duration()));
        }
        if slice > quota {
            return Err(BandwidthError::QuotaBelowSlice { quota, slice });
        }
        if self.most() > AMOUNT_MAX {
            return Err(BandwidthError::TooMuch);
        }
        Ok(())
    }

    /// Checks the settings of a quota of CPU time on a machine with `cpus` CPUs.
    pub fn check_cpu_time(&self, cpus: u32) -> Result<(), BandwidthError> {
        self.check()?;
        let capacity = self.period.0.saturating_mul(u64::from(cpus));
        if self.quota > capacity {
            return Err(BandwidthError::QuotaAboveMachine { quota: self.quota, capacity });
        }
        Ok(())
    }
}
