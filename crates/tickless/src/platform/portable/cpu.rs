//! Assigns a base to each thread. The standard library does not report the CPU that a thread runs
//! on, so threads get bases in turn, on first use, and keep them.

use crate::platform::chance::Chance;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use tickless_core::time::CpuId;

/// The number of bases, and which one a thread has.
#[derive(Debug, Clone)]
pub struct CpuMap {
    bases: u16,
    /// Chooses the base at random instead of by thread.
    chance: Option<Arc<Chance>>,
}

thread_local! {
    /// This thread's number, counted from one. Has no destructor.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

fn number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    if NUMBER.get() == 0 {
        // Never zero, also when the count wraps.
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1));
    }
    NUMBER.get()
}

impl CpuMap {
    /// Creates a base for each thread that the system can run at once.
    pub fn of_this_process() -> CpuMap {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get());
        CpuMap { bases: u16::try_from(count).unwrap_or(u16::MAX - 1), chance: None }
    }

    /// Does nothing: no thread was pinned.
    pub fn roam(&self) {}

    /// Sets the number of bases, at least one.
    pub fn with_bases(self, bases: u16) -> CpuMap {
        CpuMap { bases: bases.max(1), ..self }
    }

    /// Makes [`here`](CpuMap::here) return a random base.
    pub fn shuffled(self, chance: Arc<Chance>) -> CpuMap {
        CpuMap { chance: Some(chance), ..self }
    }

    /// Returns the number of bases.
    pub fn bases(&self) -> u16 {
        self.bases
    }

    /// Returns `None`: the CPU of a base is not known.
    pub fn cpu_of(&self, _: CpuId) -> Option<u32> {
        None
    }

    /// Returns what reads the number of the calling thread.
    pub fn current(&self) -> CurrentCpu {
        CurrentCpu
    }

    /// Returns the base of the calling thread.
    #[inline]
    pub fn here(&self) -> CpuId {
        let place = match &self.chance {
            None => number(),
            Some(chance) => chance.draw() as u32,
        };
        CpuId((place % u32::from(self.bases)) as u16)
    }
}

/// Reads the number of the calling thread, in place of its CPU's.
#[derive(Debug, Clone, Copy)]
pub struct CurrentCpu;

impl CurrentCpu {
    /// Returns the number.
    pub fn number(self) -> usize {
        number() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thread keeps its base, and threads are spread over all bases.
    #[test]
    fn threads_are_spread_over_the_bases() {
        let map = CpuMap::of_this_process().with_bases(3);
        let here = || std::thread::scope(|s| s.spawn(|| [map.here(), map.here()]).join());
        let mut seen = [false; 3];
        for _ in 0..1000 {
            let [first, second] = here().expect("it has ended");
            assert_eq!(first, second);
            seen[first.index()] = true;
        }
        assert_eq!(seen, [true; 3]);
    }
}
