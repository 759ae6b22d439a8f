//! Which clock a deadline is given on.

use core::sync::atomic::{AtomicI64, Ordering};

/// Which clock the deadlines of a `ClockTimer` are given on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum TimeBase {
    /// That of all other timers: it is never set, and stands while the system is suspended.
    Monotonic,
    /// Linux only. The time since boot: it is never set, and goes on while the system is suspended.
    #[cfg(linux_platform)]
    Boottime,
    /// The time of day, since 1970: whoever may sets it, forwards or backwards, and it goes on
    /// while the system is suspended.
    Realtime,
}

/// How far a program's hand has moved boottime and realtime: those of virtual time, and of tests.
#[derive(Debug, Default)]
pub struct Steps([AtomicI64; 2]);

/// The time of day when virtual time begins, less what its clock shows: 2000-01-01, at 0:00.
const VIRTUAL_EPOCH_NS: i64 = 946_684_800_000_000_000;

impl Steps {
    /// As far apart as virtual clocks are at first.
    pub fn of_virtual_time() -> Steps {
        Steps([AtomicI64::new(0), AtomicI64::new(VIRTUAL_EPOCH_NS)])
    }

    /// Moves a clock. Monotonic time cannot be.
    pub fn step(&self, base: TimeBase, by_ns: i64) {
        if base != TimeBase::Monotonic {
            self.word(base).fetch_add(by_ns, Ordering::Relaxed);
        }
    }

    /// How far it has been moved.
    pub fn of(&self, base: TimeBase) -> i64 {
        self.word(base).load(Ordering::Relaxed)
    }

    fn word(&self, base: TimeBase) -> &AtomicI64 {
        &self.0[usize::from(base == TimeBase::Realtime)]
    }
}
