//! Queues of timers that are standard heaps and trees.

use super::queues::Queue;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// A deadline in ns, and the timer's key.
type Place = (u64, u32);

/// The timers of many programs: a `std` B-tree, keyed by deadline.
pub struct Tree(BTreeMap<Place, u64>);

impl Queue for Tree {
    type Handle = Place;

    fn new() -> Tree {
        Tree(BTreeMap::new())
    }

    fn arm(&mut self, key: u32, after: Duration) -> Place {
        let place = (after.as_nanos() as u64, key);
        self.0.insert(place, 0);
        place
    }

    fn push_out(&mut self, place: &mut Place, key: u32, after: Duration) {
        self.cancel(*place);
        *place = self.arm(key, after);
    }

    fn cancel(&mut self, place: Place) -> bool {
        self.0.remove(&place).is_some()
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let now = now.as_nanos() as u64;
        while let Some(first) = self.0.first_entry().filter(|first| first.key().0 <= now) {
            fired.push(first.remove_entry().0.1);
        }
    }

    fn pending(&self) -> usize {
        self.0.len()
    }
}

/// The timers of many programs: a `std` binary heap with lazy deletion.
///
/// An entry whose timer has been cancelled or moved stays in the heap until it comes to the top.
/// Without a bound that keeps more garbage than timers (most timeouts are cancelled), so the
/// heap is swept whenever half of it is garbage.
pub struct LazyHeap {
    /// A deadline in ns, a timer's key, and which arming of it.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    timers: Vec<Timer>,
    armed: usize,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    arming: u32,
    is_armed: bool,
}

impl LazyHeap {
    /// Garbage that is not worth a sweep.
    const GARBAGE_MIN: usize = 1024;

    /// Removes the entries of cancelled timers when they are more than half of the heap.
    fn sweep(&mut self) {
        if self.heap.len() > 2 * self.armed + Self::GARBAGE_MIN {
            let timers = &self.timers;
            self.heap.retain(|&Reverse((_, key, arming))| {
                let timer = timers[key as usize];
                timer.is_armed && timer.arming == arming
            });
        }
    }
}

impl Queue for LazyHeap {
    type Handle = u32;

    fn new() -> LazyHeap {
        LazyHeap { heap: BinaryHeap::new(), timers: Vec::new(), armed: 0 }
    }

    fn arm(&mut self, key: u32, after: Duration) -> u32 {
        if self.timers.len() <= key as usize {
            self.timers.resize(key as usize + 1, Timer::default());
        }
        let timer = &mut self.timers[key as usize];
        timer.arming = timer.arming.wrapping_add(1);
        self.armed += usize::from(!timer.is_armed);
        timer.is_armed = true;
        self.heap.push(Reverse((after.as_nanos() as u64, key, timer.arming)));
        self.sweep();
        key
    }

    fn push_out(&mut self, handle: &mut u32, _: u32, after: Duration) {
        self.arm(*handle, after);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let was_armed = std::mem::take(&mut self.timers[key as usize].is_armed);
        self.armed -= usize::from(was_armed);
        was_armed
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let now = now.as_nanos() as u64;
        while let Some(&Reverse((_, key, arming))) =
            self.heap.peek().filter(|first| first.0.0 <= now)
        {
            self.heap.pop();
            if self.timers[key as usize].arming == arming && self.cancel(key) {
                fired.push(key);
            }
        }
    }

    fn pending(&self) -> usize {
        self.armed
    }
}
