//! A wheel that is driven by its caller's clock.

use super::queues::Queue;
use std::time::{Duration, Instant};

/// Levels of 64 slots over a slab; timers move down as they come near.
pub struct Nexus {
    epoch: Instant,
    wheel: nexus_timer::Wheel<u32>,
}

type NexusHandle = Option<nexus_timer::TimerHandle<u32>>;

impl Queue for Nexus {
    /// `None` while the timer is being moved.
    type Handle = NexusHandle;

    fn new() -> Nexus {
        let epoch = Instant::now();
        Nexus { epoch, wheel: nexus_timer::Wheel::unbounded(4096, epoch) }
    }

    fn arm(&mut self, key: u32, after: Duration) -> NexusHandle {
        Some(self.wheel.schedule(self.epoch + after, key))
    }

    fn arm_and_forget(&mut self, key: u32, after: Duration) {
        self.wheel.schedule_forget(self.epoch + after, key);
    }

    fn push_out(&mut self, handle: &mut NexusHandle, _: u32, after: Duration) {
        *handle = handle.take().map(|old| self.wheel.reschedule(old, self.epoch + after));
    }

    fn cancel(&mut self, handle: NexusHandle) -> bool {
        handle.is_some_and(|handle| self.wheel.cancel(handle).is_some())
    }

    fn free(&mut self, handle: NexusHandle) {
        handle.into_iter().for_each(|handle| self.wheel.free(handle));
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        self.wheel.poll_and_rebalance(self.epoch + now, fired);
    }

    fn pending(&self) -> usize {
        self.wheel.len()
    }
}
