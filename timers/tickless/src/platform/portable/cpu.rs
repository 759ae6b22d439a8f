//! Assigns each thread a base: a group of timers with a lock of its own. The standard library does
//! not report the CPU that a thread runs on. So each thread gets the next base in turn when it
//! first uses timers, and keeps it.

use crate::platform::chance::Chance;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use tickless_core::time::CpuId;

/// Finds the base of the calling thread among a fixed number of bases.
#[derive(Debug, Clone)]
pub struct CpuMap {
    bases: u16,
    /// If present, `here` draws a random base from it, instead of using the thread's own.
    chance: Option<Arc<Chance>>,
}

thread_local! {
    /// This thread's number, counted from one; zero until the thread has got one. The variable has
    /// no destructor, so a thread that is ending can still read it.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// Returns the number of this thread. Threads are numbered from 1 when they first ask.
fn number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    if NUMBER.get() == 0 {
        // Skip zero when the count wraps: it means that the thread has no number yet.
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1));
    }
    NUMBER.get()
}

impl CpuMap {
    /// Creates a map with as many bases as the system can run threads at the same time.
    pub fn of_this_process() -> CpuMap {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get());
        CpuMap { bases: u16::try_from(count).unwrap_or(u16::MAX - 1), chance: None }
    }

    /// Does nothing: here no thread is ever pinned to a CPU.
    pub fn roam(&self) {}

    pub fn with_bases(self, bases: u16) -> CpuMap {
        CpuMap { bases: bases.max(1), ..self }
    }

    pub fn shuffled(self, chance: Arc<Chance>) -> CpuMap {
        CpuMap { chance: Some(chance), ..self }
    }

    pub fn bases(&self) -> u16 {
        self.bases
    }

    /// Returns `None`: here a base does not belong to a CPU.
    pub fn cpu_of(&self, _: CpuId) -> Option<u32> {
        None
    }

    pub fn current(&self) -> CurrentCpu {
        CurrentCpu
    }

    #[inline]
    pub fn here(&self) -> CpuId {
        let place = match &self.chance {
            None => number(),
            Some(chance) => chance.draw() as u32,
        };
        CpuId((place % u32::from(self.bases)) as u16)
    }

    #[inline]
    pub fn try_here(&self) -> Option<CpuId> {
        Some(self.here())
    }
}

/// Replaces the Linux type of the same name, which reads the number of the caller's CPU: the number
/// of the calling thread serves the same purpose, to spread threads over several copies of a value.
#[derive(Debug, Clone, Copy)]
pub struct CurrentCpu;

impl CurrentCpu {
    pub fn number(self) -> usize {
        number() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
