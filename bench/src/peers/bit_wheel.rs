//! bitwheel: gears of 64 slots of so many places each, all of them there from the beginning.
//!
//! What finds no place goes to a `BTreeMap`, in the variant that can do that; the plain one
//! refuses it, and cannot hold as many timers as are pending here.

use super::{Expire, STEPS, STEPS_MS, Table};
use crate::sample::Stopwatch;
use bitwheel::timer::{BitWheelWithFailover, Timer, TimerHandle};
use std::time::{Duration, Instant};

/// Counts what fires.
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

impl BitWheel {
    fn move_to(&mut self, timer: usize, after: Duration) {
        let handle = self.handles[timer].take().expect("it is put back");
        let cancelled = self.wheel.cancel(handle);
        debug_assert!(cancelled.is_some());
        self.handles[timer] = Some(self.wheel.insert(self.now + after, Adds));
    }
}

impl Table for BitWheel {
    const NAME: &'static str = "bitwheel, with failover";

    fn new() -> BitWheel {
        let now = Instant::now();
        BitWheel { now, wheel: Wheel::boxed_with_epoch(now), handles: Vec::new() }
    }

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
        self.move_to(timer, after);
    }

    fn pending(&mut self) -> usize {
        self.wheel.len()
    }

    fn handle_bytes() -> usize {
        size_of::<TimerHandle>()
    }
}

pub const EXPIRE: Expire = Expire { name: BitWheel::NAME, how: STEPS, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let mut table = BitWheel::new();
    after.iter().for_each(|&after| table.add(after));
    let mut fired = 0;
    let watch = Stopwatch::start();
    for ms in 1..=STEPS_MS {
        table.wheel.poll(table.now + Duration::from_millis(ms), &mut fired);
    }
    (fired, watch.elapsed())
}
