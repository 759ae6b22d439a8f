//! nexus-timer's wheel: timers in a slab, moved from level to level as they come near; `&mut`.

use super::{Steps, Table};
use nexus_timer::{TimerHandle, Wheel};
use std::time::{Duration, Instant};

const CHUNK: usize = 4096;

pub type Handle = TimerHandle<u64>;

pub struct Nexus {
    now: Instant,
    wheel: Wheel<u64>,
    /// `None` while one is being moved.
    handles: Vec<Option<Handle>>,
    due: Vec<u64>,
}

impl Default for Nexus {
    fn default() -> Nexus {
        let now = Instant::now();
        let wheel = Wheel::unbounded(CHUNK, now);
        Nexus { now, wheel, handles: Vec::new(), due: Vec::new() }
    }
}

impl Table for Nexus {
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
}

impl Steps for Nexus {
    fn arm_all(&mut self, after: &[Duration]) {
        self.due.reserve(after.len());
        after.iter().for_each(|&after| self.wheel.schedule_forget(self.now + after, 0));
    }

    fn advance(&mut self, ms: u64) -> u64 {
        self.wheel.poll_and_rebalance(self.now + Duration::from_millis(ms), &mut self.due);
        self.due.drain(..).map(|value| value + 1).sum()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        for handle in self.handles.drain(..).flatten() {
            self.wheel.free(handle);
        }
    }
}
