//! `tickless::LocalTimers` in a loop that gets its events in batches.

use super::local::{Local, START};
use super::{Steps, Table};
use std::time::Duration;
use tickless::local::Key;
use tickless::time::Instant;

/// The number of events that many loops ask `epoll_wait` for.
const BATCH: usize = 64;

pub struct Batches {
    local: Local,
    spares: Vec<Key>,
    armings: Vec<(Key, Instant)>,
    due: Vec<Key>,
}

impl Default for Batches {
    fn default() -> Batches {
        let mut local = Local::default();
        let spares = (0..BATCH).map(|_| local.timers.insert(0).expect("room for a batch"));
        let spares = spares.collect();
        Batches { local, spares, armings: Vec::with_capacity(BATCH), due: Vec::new() }
    }
}

impl Table for Batches {
    fn add(&mut self, after: Duration) {
        self.local.add(after);
    }

    fn pair(&mut self, after: Duration) {
        self.local.pair(after);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.local.push_out(timer, after);
    }

    fn pending(&mut self) -> usize {
        self.local.pending()
    }

    fn pairs(&mut self, after: &[Duration]) {
        for batch in after.chunks(BATCH) {
            self.armings.clear();
            let keys = self.spares.iter().zip(batch);
            self.armings.extend(keys.map(|(&key, &after)| (key, START + after)));
            let armed = self.local.timers.start_many(&self.armings);
            let cancelled = self.local.timers.cancel_many(&self.spares[..batch.len()]);
            debug_assert_eq!((armed, cancelled), (batch.len(), batch.len()));
        }
    }

    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        for batch in plan.chunks(BATCH) {
            self.armings.clear();
            let keys = &self.local.keys;
            let armings = batch.iter().map(|&(timer, after)| (keys[timer as usize], START + after));
            self.armings.extend(armings);
            let armed = self.local.timers.start_many(&self.armings);
            debug_assert_eq!(armed, batch.len());
        }
    }
}

impl Steps for Batches {
    fn arm_all(&mut self, after: &[Duration]) {
        self.due.reserve(after.len());
        self.local.arm_all(after);
    }

    fn advance(&mut self, ms: u64) -> u64 {
        self.local.timers.advance_into(START + Duration::from_millis(ms), &mut self.due);
        self.due.drain(..).count() as u64
    }
}
