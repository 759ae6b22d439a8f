//! Wheels that are driven by their caller's clock.

use super::queues::Queue;
use bitwheel::timer::{BitWheelWithFailover, Timer, TimerHandle};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);

/// A timer of bitwheel that reports its key.
pub struct Reports(u32);

impl Timer for Reports {
    type Context = Vec<u32>;

    fn fire(&mut self, fired: &mut Vec<u32>) {
        fired.push(self.0);
    }
}

/// Five gears of 64 slots with 1024 places each, for a million timers. A timer fires from the gear
/// of its delay, so far ones are rounded coarsely. One that finds no place goes to a `BTreeMap`.
pub struct BitWheel {
    epoch: Instant,
    wheel: Box<BitWheelWithFailover<Reports, 5, 1, 1024>>,
}

impl Queue for BitWheel {
    /// `None` while the timer is being moved.
    type Handle = Option<TimerHandle>;

    fn new() -> BitWheel {
        let epoch = Instant::now();
        BitWheel { epoch, wheel: BitWheelWithFailover::boxed_with_epoch(epoch) }
    }

    fn arm(&mut self, key: u32, after: Duration) -> Option<TimerHandle> {
        Some(self.wheel.insert(self.epoch + after, Reports(key)))
    }

    fn push_out(&mut self, handle: &mut Option<TimerHandle>, key: u32, after: Duration) {
        self.cancel(handle.take());
        *handle = self.arm(key, after);
    }

    fn cancel(&mut self, handle: Option<TimerHandle>) -> bool {
        handle.is_some_and(|handle| self.wheel.cancel(handle).is_some())
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        self.wheel.poll(self.epoch + now, fired);
    }

    fn pending(&self) -> usize {
        self.wheel.len()
    }
}

/// Four levels of 256 slots, a list of what is farther, and a hash map. It is told each tick.
pub struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    now: Duration,
    /// Counted here, because the wheel has no such number.
    pending: usize,
    late: Vec<u32>,
}

impl Queue for HashWheel {
    type Handle = u64;

    fn new() -> HashWheel {
        let wheel = QuadWheelWithOverflow::new();
        HashWheel { wheel, now: Duration::ZERO, pending: 0, late: Vec::new() }
    }

    fn arm(&mut self, key: u32, after: Duration) -> u64 {
        let id = u64::from(key);
        // The wheel rounds down.
        let delay = (after + (TICK - Duration::from_nanos(1))).saturating_sub(self.now);
        self.pending += 1;
        // It refuses a timer that is due at once, for its caller to fire.
        if self.wheel.insert(IdOnlyTimerEntry { id, delay }).is_err() {
            self.late.push(key);
        }
        id
    }

    fn push_out(&mut self, handle: &mut u64, key: u32, after: Duration) {
        self.cancel(*handle);
        *handle = self.arm(key, after);
    }

    fn cancel(&mut self, id: u64) -> bool {
        let late = self.late.len();
        if late > 0 {
            self.late.retain(|&other| u64::from(other) != id);
        }
        let was_pending = late != self.late.len() || self.wheel.cancel(&id).is_ok();
        self.pending -= usize::from(was_pending);
        was_pending
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let before = fired.len();
        fired.append(&mut self.late);
        while self.now + TICK <= now {
            // As its own thread does, which sleeps through ticks without timers.
            let left = (now - self.now).as_millis() as u64 - 1;
            let skipped = match self.wheel.can_skip() {
                Skip::None => 0,
                Skip::Empty => left,
                Skip::Millis(most) => u64::from(most).min(left),
            };
            self.wheel.skip(skipped as u32);
            self.now += Duration::from_millis(skipped + 1);
            fired.extend(self.wheel.tick().into_iter().map(|entry| entry.id as u32));
        }
        self.pending -= fired.len() - before;
    }

    fn pending(&self) -> usize {
        self.pending
    }
}

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
