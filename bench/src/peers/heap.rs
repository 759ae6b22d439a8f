//! The timers of many programs: a `std` binary heap with lazy deletion.
//!
//! An entry whose timer has been cancelled or moved stays in the heap until it comes to the top.
//! Without a bound that keeps more garbage than timers (most timeouts are cancelled), so the
//! heap is swept whenever half of it is garbage.

use super::{Shared, Steps, Table};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::time::Duration;

/// A deadline in ns, a timer's number, and which arming of it.
type Entry = Reverse<(u64, u32, u32)>;

/// Garbage that is not worth a sweep.
const GARBAGE_MIN: usize = 1024;

pub struct LazyHeap {
    heap: BinaryHeap<Entry>,
    timers: Vec<Timer>,
    armed: usize,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    arming: u32,
    armed: bool,
    value: u64,
}

impl LazyHeap {
    fn make(&mut self) -> u32 {
        self.timers.push(Timer::default());
        self.timers.len() as u32 - 1
    }

    fn arm(&mut self, timer: u32, after: Duration) {
        let state = &mut self.timers[timer as usize];
        state.arming = state.arming.wrapping_add(1);
        self.armed += usize::from(!state.armed);
        state.armed = true;
        self.heap.push(Reverse((after.as_nanos() as u64, timer, state.arming)));
        self.sweep();
    }

    fn cancel(&mut self, timer: u32) {
        let state = &mut self.timers[timer as usize];
        self.armed -= usize::from(state.armed);
        state.armed = false;
    }

    fn sweep(&mut self) {
        if self.heap.len() > 2 * self.armed + GARBAGE_MIN {
            let timers = &self.timers;
            self.heap.retain(|&Reverse((_, timer, arming))| {
                let state = timers[timer as usize];
                state.armed && state.arming == arming
            });
        }
    }

    fn pop(&mut self, now: u64) -> Option<&mut Timer> {
        loop {
            let &Reverse((deadline, timer, arming)) = self.heap.peek()?;
            if deadline > now {
                return None;
            }
            self.heap.pop();
            let state = self.timers[timer as usize];
            if state.armed && state.arming == arming {
                self.cancel(timer);
                return Some(&mut self.timers[timer as usize]);
            }
        }
    }
}

/// Timer 0 is that of the pairs.
impl Default for LazyHeap {
    fn default() -> LazyHeap {
        let timers = vec![Timer::default()];
        LazyHeap { heap: BinaryHeap::new(), timers, armed: 0 }
    }
}

impl Table for LazyHeap {
    fn add(&mut self, after: Duration) {
        let timer = self.make();
        self.arm(timer, after);
    }

    fn pair(&mut self, after: Duration) {
        self.arm(0, after);
        self.cancel(0);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.arm(timer as u32 + 1, after);
    }

    fn pending(&mut self) -> usize {
        self.armed
    }
}

impl Shared for Mutex<LazyHeap> {
    const NAME: &'static str = "std BinaryHeap in a mutex";
    type Timer = Box<u32>;

    fn new() -> Self {
        Mutex::default()
    }

    fn timer(&self) -> Box<u32> {
        Box::new(self.lock().expect("nothing panics under this lock").make())
    }

    fn arm(&self, timer: &mut Box<u32>, after: Duration) {
        self.lock().expect("nothing panics under this lock").arm(**timer, after);
    }

    fn cancel(&self, timer: &mut Box<u32>) {
        self.lock().expect("nothing panics under this lock").cancel(**timer);
    }
}

impl Steps for LazyHeap {
    fn advance(&mut self, ms: u64) -> u64 {
        let mut fired = 0;
        while let Some(timer) = self.pop(ms * 1_000_000) {
            timer.value += 1;
            fired += timer.value;
        }
        fired
    }
}
