//! Counters of a group.

use core::time::Duration;

/// Counters of a limiter or throttle. Amounts are permits, or nanoseconds of CPU time. A *member*
/// is a caller of a limiter, or a worker of a throttle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// The amount that refills have added to the group, including `expired`. The part that is
    /// neither `used` nor `expired` is still in the pool or with the members.
    pub refilled: u128,
    /// The amount that members have used.
    pub used: u128,
    /// The amount that was discarded because the group would have held more than its capacity.
    pub expired: u128,
    /// The number of refills.
    pub refills: u64,
    /// The number of periods without a refill: a late refill in a later one added their quota.
    pub missed: u64,
    /// The number of times that a member had to wait.
    pub throttled: u64,
    /// The number of times that a waiting member was released.
    pub released: u64,
    /// The total time that members have waited until they were released.
    pub waited: Duration,
}
