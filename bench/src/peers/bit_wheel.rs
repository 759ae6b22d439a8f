//! bitwheel: gears of 64 slots with a fixed number of places each, allocated at the beginning.
//!
//! A timer that finds no place goes to a `BTreeMap`, in the variant with failover; the plain one
//! refuses it, and cannot hold as many timers as are pending here.

use super::{Steps, Table};
use bitwheel::timer::{BitWheelWithFailover, Timer, TimerHandle};
use std::time::{Duration, Instant};

struct Adds;

impl Timer for Adds {
    type Context = u64;

    fn fire(&mut self, fired: &mut u64) {
        *fired += 1;
    }
}

/// Five gears of 1 ms, 1,024 places a slot.
type Wheel = BitWheelWithFailover<Adds, 5, 1, 1024>;

pub struct BitWheel {
    now: Instant,
    wheel: Box<Wheel>,
    handles: Vec<Option<TimerHandle>>,
}

impl Default for BitWheel {
    fn default() -> BitWheel {
        let now = Instant::now();
        BitWheel { now, wheel: Wheel::boxed_with_epoch(now), handles: Vec::new() }
    }
}

impl Table for BitWheel {
    fn add(&mut self, after: Duration) {
        let handle = self.wheel.insert(self.now + after, Adds);
        self.handles.push(Some(handle));
    }

    fn pair(&mut self, after: Duration) {
        let handle = self.wheel.insert(self.now + after, Adds);
        let cancelled = self.wheel.cancel(handle);
        debug_assert!(cancelled.is_some());
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let handle = self.handles[timer].take().expect("it is put back");
        let cancelled = self.wheel.cancel(handle);
        debug_assert!(cancelled.is_some());
        self.handles[timer] = Some(self.wheel.insert(self.now + after, Adds));
    }

    fn pending(&mut self) -> usize {
        self.wheel.len()
    }
}

impl Steps for BitWheel {
    fn advance(&mut self, ms: u64) -> u64 {
        let mut fired = 0;
        self.wheel.poll(self.now + Duration::from_millis(ms), &mut fired);
        fired
    }
}
