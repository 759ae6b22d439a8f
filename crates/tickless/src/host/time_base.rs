//! Which clock a deadline is given on, and what that clock shows.

use super::clock::{ClockSource, HostClock};
use core::sync::atomic::{AtomicI64, Ordering};
use rustix::time::{ClockId, clock_gettime};
use tickless_core::time::Ns;

/// Which clock the deadlines of a [`ClockTimer`](crate::ClockTimer) are given on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TimeBase {
    /// That of all other timers: it is never set, and stands while the system is suspended.
    Monotonic,
    /// The time since boot: it is never set, and goes on while the system is suspended.
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

    /// What a clock shows.
    pub fn read(&self, base: TimeBase, clock: &HostClock) -> Ns {
        let id = match base {
            TimeBase::Monotonic => return clock.now(),
            TimeBase::Boottime => ClockId::Boottime,
            TimeBase::Realtime => ClockId::Realtime,
        };
        let shown = match clock.source() {
            ClockSource::Manual => clock.now(),
            _ => {
                let now = clock_gettime(id);
                // Before 1970 it is 1970.
                let ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
                Ns(ns.clamp(0, i128::from(u64::MAX)) as u64)
            }
        };
        Ns(shown.0.saturating_add_signed(self.of(base).load(Ordering::Relaxed)))
    }

    /// Moves a clock. Monotonic time cannot be.
    pub fn step(&self, base: TimeBase, by_ns: i64) {
        if base != TimeBase::Monotonic {
            self.of(base).fetch_add(by_ns, Ordering::Relaxed);
        }
    }

    fn of(&self, base: TimeBase) -> &AtomicI64 {
        &self.0[usize::from(base == TimeBase::Realtime)]
    }
}
