//! `tickless::LocalTimers`, used as a loop does that gets its events in batches.

use super::local::{Local, START};
use super::{Expire, STEPS, STEPS_MS, Table};
use crate::sample::Stopwatch;
use std::time::Duration;
use tickless::local::Key;
use tickless::time::Instant;

/// As many events as many a loop asks `epoll_wait` for.
const BATCH: usize = 64;

pub struct Batches {
    local: Local,
    spares: Vec<Key>,
    armings: Vec<(Key, Instant)>,
}

impl Table for Batches {
    const NAME: &'static str = "**LocalTimers**, in batches of 64";

    fn new() -> Batches {
        let mut local = Local::new();
        let spares = (0..BATCH).map(|_| local.timers.insert(0).expect("room for a batch"));
        let spares = spares.collect();
        Batches { local, spares, armings: Vec::with_capacity(BATCH) }
    }

    fn add(&mut self, after: Duration) {
        self.local.add(after);
    }

    fn pair(&mut self, after: Duration) {
        self.local.pair(after);
    }

    fn pair_all(&mut self, after: &[Duration]) {
        for batch in after.chunks(BATCH) {
            self.armings.clear();
            let keys = self.spares.iter().zip(batch);
            self.armings.extend(keys.map(|(&key, &after)| (key, START + after)));
            let armed = self.local.timers.start_many(&self.armings);
            let cancelled = self.local.timers.cancel_many(&self.spares[..batch.len()]);
            debug_assert_eq!((armed, cancelled), (batch.len(), batch.len()));
        }
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.local.push_out(timer, after);
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

    fn pending(&mut self) -> usize {
        Table::pending(&mut self.local)
    }

    fn handle_bytes() -> usize {
        Local::handle_bytes()
    }
}

pub const EXPIRE: Expire =
    Expire { name: "**LocalTimers**, keys only: `advance_into`", how: STEPS, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = Local::new();
    after.iter().for_each(|&after| table.add(after));
    let (mut fired, mut keys) = (0, Vec::with_capacity(after.len()));
    let watch = Stopwatch::start();
    for ms in 1..=STEPS_MS {
        table.timers.advance_into(START + Duration::from_millis(ms), &mut keys);
        fired += keys.drain(..).count() as u64;
    }
    (fired, watch.elapsed())
}
