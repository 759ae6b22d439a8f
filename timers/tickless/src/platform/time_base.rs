//! The clocks that a deadline can refer to: monotonic, boottime and realtime.

use core::sync::atomic::{AtomicI64, Ordering};

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

/// How far the program has moved boottime and realtime against monotonic time.
#[derive(Debug, Default)]
pub struct Steps([AtomicI64; 2]);

/// How far realtime is ahead of monotonic time when virtual time begins. So the monotonic time zero
/// is 2000-01-01 at 0:00 UTC.
const VIRTUAL_EPOCH_NS: i64 = 946_684_800_000_000_000;

impl Steps {
    pub fn of_virtual_time() -> Steps {
        Steps([AtomicI64::new(0), AtomicI64::new(VIRTUAL_EPOCH_NS)])
    }

    /// Moves a clock by this number of nanoseconds. Monotonic time cannot be moved.
    pub fn step(&self, base: TimeBase, by_ns: i64) {
        if base != TimeBase::Monotonic {
            self.word(base).fetch_add(by_ns, Ordering::Relaxed);
        }
    }

    pub fn of(&self, base: TimeBase) -> i64 {
        self.word(base).load(Ordering::Relaxed)
    }

    fn word(&self, base: TimeBase) -> &AtomicI64 {
        &self.0[usize::from(base == TimeBase::Realtime)]
    }
}
