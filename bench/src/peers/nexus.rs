//! nexus-timer's wheel: timers in a slab, moved from level to level as they come near; `&mut`.

use super::{Expire, STEPS, STEPS_MS, Table};
use crate::sample::Stopwatch;
use nexus_timer::{TimerHandle, Wheel};
use std::time::{Duration, Instant};

/// Timers of one chunk of its slab.
const CHUNK: usize = 4096;

pub struct Nexus {
    now: Instant,
    wheel: Wheel<u64>,
    /// `None` while one is being moved.
    handles: Vec<Option<TimerHandle<u64>>>,
}

impl Table for Nexus {
    const NAME: &'static str = "nexus-timer `Wheel`";

    fn new() -> Nexus {
        let now = Instant::now();
        Nexus { now, wheel: Wheel::unbounded(CHUNK, now), handles: Vec::new() }
    }

    fn add(&mut self, after: Duration) {
        let handle = self.wheel.schedule(self.now + after, 0);
        self.handles.push(Some(handle));
    }

    fn pair(&mut self, after: Duration) {
        let handle = self.wheel.schedule(self.now + after, 0);
        let cancelled = self.wheel.cancel(handle);
        debug_assert_eq!(cancelled, Some(0));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let handle = self.handles[timer].take().expect("it is put back");
        self.handles[timer] = Some(self.wheel.reschedule(handle, self.now + after));
    }

    fn pending(&mut self) -> usize {
        self.wheel.len()
    }

    fn handle_bytes() -> usize {
        size_of::<TimerHandle<u64>>()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        for handle in self.handles.drain(..).flatten() {
            self.wheel.free(handle);
        }
    }
}

pub const EXPIRE: Expire = Expire { name: Nexus::NAME, how: STEPS, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = Nexus::new();
    for &after in after {
        table.wheel.schedule_forget(table.now + after, 0);
    }
    let (mut fired, mut batch) = (0, Vec::with_capacity(after.len()));
    let watch = Stopwatch::start();
    for ms in 1..=STEPS_MS {
        table.wheel.poll_and_rebalance(table.now + Duration::from_millis(ms), &mut batch);
        fired += batch.drain(..).map(|value| value + 1).sum::<u64>();
    }
    (fired, watch.elapsed())
}
