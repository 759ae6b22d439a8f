//! hierarchical_hash_wheel_timer's cancellable wheel: four levels and a hash map, one thread.

use super::{Steps, Table};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use std::time::Duration;

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    timers: u64,
    /// Counted here, because the wheel has no such number.
    pending: usize,
}

impl HashWheel {
    fn insert(&mut self, id: u64, after: Duration) {
        let inserted = self.wheel.insert(IdOnlyTimerEntry { id, delay: after });
        debug_assert!(inserted.is_ok());
        self.pending += 1;
    }

    fn cancel(&mut self, id: u64) {
        let cancelled = self.wheel.cancel(&id);
        debug_assert!(cancelled.is_ok());
        self.pending -= 1;
    }
}

impl Default for HashWheel {
    fn default() -> HashWheel {
        HashWheel { wheel: QuadWheelWithOverflow::new(), timers: 0, pending: 0 }
    }
}

impl Table for HashWheel {
    fn add(&mut self, after: Duration) {
        self.insert(self.timers, after);
        self.timers += 1;
    }

    fn pair(&mut self, after: Duration) {
        self.insert(u64::MAX, after);
        self.cancel(u64::MAX);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.cancel(timer as u64);
        self.insert(timer as u64, after);
    }

    fn pending(&mut self) -> usize {
        self.pending
    }
}

impl Steps for HashWheel {
    /// The wheel refuses timers that are due at once.
    fn arm_all(&mut self, after: &[Duration]) {
        after.iter().for_each(|&after| self.add(after.max(Duration::from_millis(1))));
    }

    fn advance(&mut self, _: u64) -> u64 {
        let timers = self.timers;
        self.wheel.tick().into_iter().map(|entry| u64::from(entry.id < timers)).sum()
    }
}
