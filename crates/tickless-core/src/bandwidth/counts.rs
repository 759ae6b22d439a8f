//! What has happened in a group.

use core::time::Duration;

/// What has happened in a limiter or throttle. Amounts are permits, or nanoseconds of CPU time. A
/// *member* is a caller of a limiter, or a worker of a throttle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// What refills have brought, `expired` included. What is neither `used` nor `expired` is still
    /// there to be taken, or held by members.
    pub refilled: u128,
    /// What members have used.
    pub used: u128,
    /// What was left over at a refill and could not be kept for later.
    pub expired: u128,
    /// How often it was refilled.
    pub refills: u64,
    /// Periods that passed without a refill of their own, because one came late.
    pub missed: u64,
    /// How often a member had to wait.
    pub throttled: u64,
    /// How often a member that waited was let go on.
    pub released: u64,
    /// How long members waited until they were let go on, all together.
    pub waited: Duration,
    /// How often the period was doubled, because refills could not keep up with it.
    pub stretched: u64,
    /// How often the period was halved again afterwards.
    pub relaxed: u64,
}
