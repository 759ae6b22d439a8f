//! tokio-util's `DelayQueue`: a wheel over a slab, behind `&mut`.

use super::tokio_sleep::{CAUGHT_UP, RUNTIME};
use super::{Expire, Table};
use crate::sample::Stopwatch;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

pub struct Delays {
    now: Instant,
    queue: DelayQueue<u64>,
    keys: Vec<Key>,
}

impl Table for Delays {
    const NAME: &'static str = "tokio-util `DelayQueue`";

    fn new() -> Delays {
        Delays { now: Instant::now(), queue: DelayQueue::new(), keys: Vec::new() }
    }

    fn around<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let _entered = RUNTIME.enter();
        f(self)
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

    fn handle_bytes() -> usize {
        size_of::<Key>()
    }
}

pub const EXPIRE: Expire = Expire { name: Delays::NAME, how: CAUGHT_UP, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = Delays::new();
    let base = table.now + Duration::from_millis(2);
    table.around(|table| {
        for &after in after {
            table.queue.insert_at(0, base + after);
        }
    });
    let all_due = base + Duration::from_millis(1010);
    std::thread::sleep(all_due.saturating_duration_since(Instant::now()));
    let mut fired = 0;
    let watch = Stopwatch::start();
    RUNTIME.block_on(async {
        while let Some(expired) = poll_fn(|cx| table.queue.poll_expired(cx)).await {
            fired += expired.into_inner() + 1;
        }
    });
    (fired, watch.elapsed())
}
