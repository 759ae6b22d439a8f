//! Wheels that are driven by their caller's clock.

use bitwheel::timer::{BitWheelWithFailover, Timer, TimerHandle};
use core::ops::RangeInclusive;
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tickless_conformance::{Cancel, NextEvent, Rounding, Timers};

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;

/// A timer of bitwheel that reports its key.
pub struct Reports(u32);

impl Timer for Reports {
    type Context = Vec<u32>;

    fn fire(&mut self, fired: &mut Vec<u32>) {
        fired.push(self.0);
    }
}

/// Gears of 64 slots; a timer fires from the gear of its delay, so far ones are rounded coarsely.
pub struct BitWheel {
    epoch: Instant,
    wheel: Box<BitWheelWithFailover<Reports, 5, 1, 64>>,
    handles: HashMap<u32, TimerHandle>,
}

impl Timers for BitWheel {
    const NAME: &str = "bitwheel 0.6.0";
    const GRANULARITY: u64 = MS;
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    const HORIZON: u64 = 4 * HOUR;

    fn new() -> BitWheel {
        let epoch = Instant::now();
        let wheel = BitWheelWithFailover::boxed_with_epoch(epoch);
        BitWheel { epoch, wheel, handles: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let at = self.epoch + Duration::from_nanos(deadline);
        self.handles.insert(key, self.wheel.insert(at, Reports(key)));
    }

    fn cancel(&mut self, key: u32) -> bool {
        let handle = self.handles.remove(&key);
        handle.is_some_and(|handle| self.wheel.cancel(handle).is_some())
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut BitWheel, u32)) {
        let mut fired = Vec::new();
        self.wheel.poll(self.epoch + Duration::from_nanos(now), &mut fired);
        for key in fired {
            self.handles.remove(&key);
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        let at = self.wheel.peek_next_fire()?;
        Some(u64::try_from((at - self.epoch).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Its README: "A 1-hour timer might fire within a ~64ms window".
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = deadline.max(now);
        due.saturating_sub(64 * MS)..=due + 64 * MS
    }
}

/// Four levels of 256 slots, and a list of what is farther. It is told each tick.
pub struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    ticks: u64,
    late: Vec<u32>,
}

impl Timers for HashWheel {
    const NAME: &str = "hierarchical_hash_wheel_timer 1.4.0";
    const GRANULARITY: u64 = MS;
    const HORIZON: u64 = 1_000 * HOUR; // within 2^32 ticks

    fn new() -> HashWheel {
        HashWheel { wheel: QuadWheelWithOverflow::new(), ticks: 0, late: Vec::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let delay = deadline.div_ceil(MS).saturating_sub(self.ticks);
        let entry = IdOnlyTimerEntry { id: u64::from(key), delay: Duration::from_millis(delay) };
        // It refuses a timer that is due at once, for its caller to fire.
        if self.wheel.insert(entry).is_err() {
            self.late.push(key);
        }
    }

    fn cancel(&mut self, key: u32) -> bool {
        let before = self.late.len();
        self.late.retain(|&other| other != key);
        before != self.late.len() || self.wheel.cancel(&u64::from(key)).is_ok()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut HashWheel, u32)) {
        for key in std::mem::take(&mut self.late) {
            fire(self, key);
        }
        while self.ticks < now / MS {
            // As its own thread does, which sleeps through ticks without timers.
            let left = now / MS - self.ticks;
            let skipped = match self.wheel.can_skip() {
                Skip::None => 0,
                Skip::Empty => left - 1,
                Skip::Millis(most) => u64::from(most).min(left - 1),
            };
            self.wheel.skip(skipped as u32);
            self.ticks += skipped + 1;
            for entry in self.wheel.tick() {
                fire(self, entry.id as u32);
            }
        }
    }
}

/// Levels of 64 slots; timers move down as they come near.
pub struct Nexus {
    epoch: Instant,
    wheel: nexus_timer::Wheel<u32>,
    handles: HashMap<u32, nexus_timer::TimerHandle<u32>>,
}

impl Timers for Nexus {
    const NAME: &str = "nexus-timer 1.5.0";
    const GRANULARITY: u64 = MS;
    const ROUNDING: Rounding = Rounding::Down;
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    // The range of its levels; a farther deadline is an error of the caller.
    const HORIZON: u64 = 4 * HOUR;

    fn new() -> Nexus {
        let epoch = Instant::now();
        let wheel = nexus_timer::Wheel::unbounded(4096, epoch);
        Nexus { epoch, wheel, handles: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let at = self.epoch + Duration::from_nanos(deadline);
        self.handles.insert(key, self.wheel.schedule(at, key));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        let at = self.epoch + Duration::from_nanos(deadline);
        let handle = self.handles.remove(&key).expect("a pending timer has a handle");
        self.handles.insert(key, self.wheel.reschedule(handle, at));
    }

    fn cancel(&mut self, key: u32) -> bool {
        let handle = self.handles.remove(&key);
        handle.is_some_and(|handle| self.wheel.cancel(handle).is_some())
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Nexus, u32)) {
        let mut fired = Vec::new();
        self.wheel.poll_and_rebalance(self.epoch + Duration::from_nanos(now), &mut fired);
        for key in fired {
            if let Some(handle) = self.handles.remove(&key) {
                self.wheel.free(handle);
            }
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        let at = self.wheel.next_deadline()?;
        Some(u64::try_from((at - self.epoch).as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        for (_, handle) in self.handles.drain() {
            self.wheel.free(handle);
        }
    }
}

/// The wheel of quinn's author: any 64-bit time, in this case nanoseconds.
pub struct TimerQueue {
    queue: timer_queue::TimerQueue<u32>,
    timers: HashMap<u32, timer_queue::Timer>,
}

impl Timers for TimerQueue {
    const NAME: &str = "timer-queue 0.1.1";
    const NEXT_EVENT: NextEvent = NextEvent::Bound;

    fn new() -> TimerQueue {
        TimerQueue { queue: timer_queue::TimerQueue::new(), timers: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.timers.insert(key, self.queue.insert(deadline, key));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.queue.reset(self.timers[&key], deadline);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let timer = self.timers.remove(&key);
        timer.is_some_and(|timer| self.queue.remove(timer) == key)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut TimerQueue, u32)) {
        while let Some(key) = self.queue.poll(now) {
            self.timers.remove(&key);
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        self.queue.next_timeout()
    }
}

/// One ring of slots; it is told each tick and returns what is in the slot.
pub struct RingWheel {
    wheel: wheel_timer::WheelTimer<u32>,
    ticks: u64,
}

impl RingWheel {
    const SLOTS: u64 = 1 << 16;
}

impl Timers for RingWheel {
    const NAME: &str = "wheel_timer 0.3.1";
    const GRANULARITY: u64 = MS;
    const CANCEL: Cancel = Cancel::None;
    const HORIZON: u64 = (RingWheel::SLOTS - 2) * MS;

    fn new() -> RingWheel {
        RingWheel { wheel: wheel_timer::WheelTimer::new(RingWheel::SLOTS as usize), ticks: 0 }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let ticks = deadline.div_ceil(MS).saturating_sub(self.ticks);
        self.wheel.schedule(ticks as usize, key);
    }

    fn cancel(&mut self, _: u32) -> bool {
        unreachable!("it has no cancel")
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut RingWheel, u32)) {
        while self.ticks < now / MS {
            self.ticks += 1;
            for key in self.wheel.tick() {
                fire(self, key);
            }
        }
    }

    /// A value is available after its ticks have passed: in the call after them.
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = deadline.max(now);
        due..=due.div_ceil(MS) * MS + MS
    }
}

/// Several layers of slots; durations are rounded to the nearest tick.
pub struct MultiWheel {
    wheel: wheel_timer2::MultiWheel,
    fired: Arc<Mutex<Vec<u32>>>,
    ticks: u64,
}

impl Timers for MultiWheel {
    const NAME: &str = "wheel-timer2 0.1.2";
    const GRANULARITY: u64 = MS;
    const ROUNDING: Rounding = Rounding::Nearest;
    const CANCEL: Cancel = Cancel::None;
    const HORIZON: u64 = HOUR;

    fn new() -> MultiWheel {
        let wheel = wheel_timer2::MultiWheel::new(5, 60, Duration::from_millis(1));
        MultiWheel { wheel, fired: Arc::default(), ticks: 0 }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let fired = Arc::clone(&self.fired);
        let report = move || fired.lock().expect("no panic").push(key);
        let delay = Duration::from_nanos(deadline.saturating_sub(self.ticks * MS));
        self.wheel.add_handle().add(report, delay).expect("the wheel exists");
    }

    fn cancel(&mut self, _: u32) -> bool {
        unreachable!("it has no cancel")
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut MultiWheel, u32)) {
        while self.ticks < now / MS {
            self.ticks += 1;
            self.wheel.tick();
        }
        let fired = std::mem::take(&mut *self.fired.lock().expect("no panic"));
        fired.into_iter().for_each(|key| fire(self, key));
    }

    /// A task is added in the next tick, and its time counts from there.
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = deadline.max(now);
        due.saturating_sub(MS)..=due + 2 * MS
    }
}
