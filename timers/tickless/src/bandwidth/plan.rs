//! The settings of a bandwidth group and its refill timer.

use crate::timers::Timers;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use tickless_core::bandwidth::{Release, Settings};
use tickless_core::phase::Phase;
use tickless_core::time::Ns;

/// Settings of a [`Limiter`](super::Limiter) or a [`Throttle`](super::Throttle); from
/// [`Timers::limiter`] and [`Timers::throttle`].
#[must_use = "a builder does nothing until `start` is called"]
pub struct BandwidthBuilder<T> {
    pub(super) timers: Timers,
    pub(super) plan: Plan,
    builds: PhantomData<fn() -> T>,
}

impl<T> BandwidthBuilder<T> {
    pub(super) fn new(timers: &Timers, plan: Plan) -> BandwidthBuilder<T> {
        BandwidthBuilder { timers: timers.clone(), plan, builds: PhantomData }
    }

    /// Sets when in its period the group is refilled. The default is [`Phase::Spread`]: at a
    /// different time from other groups with the same period. With [`Phase::Aligned`] all such
    /// groups are refilled at the same time.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.plan.phase = phase;
        self
    }

    /// Sets how late a refill is allowed to be, to share a wakeup with other timers. The default is
    /// a thousandth of the period, and up to a tenth if hundreds of groups have the same period.
    pub fn slack(mut self, slack: Duration) -> Self {
        self.plan.slack = Some(slack);
        self
    }

    /// Sets how fast waiting callers are released after a refill: `batch` of them at once, and as
    /// many again after each `gap`. The default batch is 32 tasks for a limiter, and as many
    /// workers as there are bases for a throttle. The default gap is a millisecond, or a 64th of
    /// the period if that is shorter.
    pub fn release(mut self, batch: u32, gap: Duration) -> Self {
        self.plan.settings.release = Release { batch, gap };
        self
    }
}

impl<T> Clone for BandwidthBuilder<T> {
    fn clone(&self) -> Self {
        BandwidthBuilder::new(&self.timers, self.plan)
    }
}

impl<T> fmt::Debug for BandwidthBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BandwidthBuilder").field("plan", &self.plan).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) settings: Settings,
    pub(super) phase: Phase,
    pub(super) slack: Option<Duration>,
    /// The most callers that a limiter lets wait.
    pub(super) waiting_max: usize,
}

impl Plan {
    pub(super) fn new(quota: u64, period: Duration, slice: u64, batch: u32) -> Plan {
        let period = Ns::from_duration(period);
        // Within this gap, members of one batch can start to run. Short compared with the period.
        let gap = Ns::from_ms(1).min(Ns(period.0 / 64)).to_duration();
        let release = Release { batch, gap };
        let settings = Settings { quota, period, extra: 0, slice, release };
        Plan { settings, phase: Phase::Spread, slack: None, waiting_max: usize::MAX }
    }
}

/// Returns how late a refill can be if `groups` groups have the same period: a thousandth of the
/// period for up to 10 groups, growing to a tenth for 1,000 and more. With this slack refills share
/// wakeups, so that each base wakes for them about ten times a period at most. The slack does not
/// change a group's rate, because refills are counted from the timer's deadline.
pub(super) fn crowd_slack(period: Ns, groups: usize) -> Duration {
    let groups = u128::try_from(groups).unwrap_or(u128::MAX).clamp(10, 1_000);
    Ns((u128::from(period.0) * groups / 10_000) as u64).to_duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_grows_with_the_crowd() {
        let slack = |groups| crowd_slack(Ns::from_ms(100), groups).as_micros();
        assert_eq!([0, 10, 100, 1_000, 5_000].map(slack), [100, 100, 1_000, 10_000, 10_000]);
        assert!(crowd_slack(Ns::NEVER, usize::MAX) <= Duration::from_nanos(u64::MAX / 10));
    }
}
