//! The clocks that a deadline can refer to: monotonic, boottime and realtime.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::time::Ns;

/// The clock that the deadlines of a `ClockTimer` refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum TimeBase {
    /// The clock that all timers except a `ClockTimer` use. It is never set, and stops while the
    /// system is suspended.
    Monotonic,
    /// Linux only. The time since boot. Is never set, and advances while the system is suspended.
    #[cfg(linux_platform)]
    Boottime,
    /// Wall-clock time since 1970. An administrator or NTP can set it forwards or backwards. It
    /// advances while the system is suspended.
    Realtime,
}

/// How far the program has moved boottime and realtime against monotonic time, in nanoseconds. In
/// 128 bits, because realtime can be set anywhere from the first to the last instant.
#[derive(Debug, Default)]
pub struct Steps(Mutex<[i128; 2]>);

/// How far realtime is ahead of monotonic time when virtual time begins. So the monotonic time zero
/// is 2000-01-01 at 0:00 UTC.
const VIRTUAL_EPOCH_NS: i128 = 946_684_800_000_000_000;

impl Steps {
    fn locked(&self) -> MutexGuard<'_, [i128; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of_virtual_time() -> Steps {
        Steps(Mutex::new([0, VIRTUAL_EPOCH_NS]))
    }

    /// Moves a clock by this number of nanoseconds. Monotonic time cannot be moved.
    pub fn step(&self, base: TimeBase, by_ns: i128) {
        if base != TimeBase::Monotonic {
            self.locked()[usize::from(base == TimeBase::Realtime)] += by_ns;
        }
    }

    /// Returns what a clock shows that would show `unmoved` without the steps. It stops at the last
    /// instant before [`Ns::NEVER`].
    pub fn shown(&self, base: TimeBase, unmoved: Ns) -> Ns {
        let by_ns = self.locked()[usize::from(base == TimeBase::Realtime)];
        Ns((i128::from(unmoved.0) + by_ns).clamp(0, i128::from(Ns::NEVER.0) - 1) as u64)
    }

    /// Sets realtime to `to` while monotonic time is `now`.
    pub fn set_realtime(&self, to: Ns, now: Ns) {
        self.locked()[1] = i128::from(to.0) - i128::from(now.0);
    }
}
