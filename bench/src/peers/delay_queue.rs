//! tokio-util's `DelayQueue`: a wheel over a slab, behind `&mut`.

use super::tokio_sleep::{CAUGHT_UP, RUNTIME};
use super::{Expire, Table};
use crate::sample::Stopwatch;
use std::future::poll_fn;
use std::time::Duration;
use tokio::runtime::EnterGuard;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

pub use tokio_util::time::delay_queue::Key;

pub struct Delays {
    now: Instant,
    queue: DelayQueue<u64>,
    keys: Vec<Key>,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays { now: Instant::now(), queue: DelayQueue::new(), keys: Vec::new() }
    }
}

impl Table for Delays {
    fn enter(&self) -> Option<EnterGuard<'static>> {
        Some(RUNTIME.enter())
    }

    fn add(&mut self, after: Duration) {
        let key = self.queue.insert_at(0, self.now + after);
        self.keys.push(key);
    }

    fn pair(&mut self, after: Duration) {
        let key = self.queue.insert_at(0, self.now + after);
        let removed = self.queue.remove(&key);
        debug_assert_eq!(removed.into_inner(), 0);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.queue.reset_at(&self.keys[timer], self.now + after);
    }

    fn pending(&mut self) -> usize {
        self.queue.len()
    }
}

pub const EXPIRE: Expire = Expire { name: "tokio-util `DelayQueue`", how: CAUGHT_UP, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut queue = DelayQueue::new();
    let base = Instant::now() + Duration::from_millis(2);
    let entered = RUNTIME.enter();
    for &after in after {
        queue.insert_at(0, base + after);
    }
    drop(entered);
    let all_due = base + Duration::from_millis(1010);
    std::thread::sleep(all_due.saturating_duration_since(Instant::now()));
    let mut fired = 0;
    let watch = Stopwatch::start();
    RUNTIME.block_on(async {
        while let Some(expired) = poll_fn(|cx| queue.poll_expired(cx)).await {
            fired += expired.into_inner() + 1;
        }
    });
    (fired, watch.elapsed())
}
