//! hierarchical_hash_wheel_timer's cancellable wheel: four levels and a hash map, one thread.

use super::{Expire, STEPS, STEPS_MS, Table};
use crate::sample::Stopwatch;
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use std::time::Duration;

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    timers: u64,
    /// It does not tell.
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

impl Table for HashWheel {
    const NAME: &'static str = "hierarchical_hash_wheel_timer";

    fn new() -> HashWheel {
        HashWheel { wheel: QuadWheelWithOverflow::new(), timers: 0, pending: 0 }
    }

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

    fn handle_bytes() -> usize {
        size_of::<u64>()
    }
}

pub const EXPIRE: Expire = Expire { name: HashWheel::NAME, how: STEPS, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = HashWheel::new();
    // It refuses what is due at once.
    after.iter().for_each(|&after| table.add(after.max(Duration::from_millis(1))));
    let mut fired = 0;
    let watch = Stopwatch::start();
    for _ in 0..STEPS_MS {
        for entry in table.wheel.tick() {
            fired += u64::from(entry.id < table.timers);
        }
    }
    (fired, watch.elapsed())
}
