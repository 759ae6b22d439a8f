//! Which base the caller is on. The standard library does not say on which CPU a thread runs, so
//! each thread has a base for good, the next one when it first asks.

use crate::platform::chance::Chance;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use tickless_core::time::CpuId;

/// How many bases there are, and which one a thread has.
#[derive(Debug, Clone)]
pub struct CpuMap {
    bases: u16,
    /// Says which base, if that is not to depend on the thread.
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
    /// A base for each thread that the system can run at once.
    pub fn of_this_process() -> CpuMap {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get());
        CpuMap { bases: u16::try_from(count).unwrap_or(u16::MAX - 1), chance: None }
    }

    /// Lets the calling thread run on every CPU: nobody has kept it from that.
    pub fn roam(&self) {}

    /// Another number of bases, at least one.
    pub fn with_bases(self, bases: u16) -> CpuMap {
        CpuMap { bases: bases.max(1), ..self }
    }

    /// The same bases; which one a caller is on is left to chance.
    pub fn shuffled(self, chance: Arc<Chance>) -> CpuMap {
        CpuMap { chance: Some(chance), ..self }
    }

    /// How many bases there are.
    pub fn bases(&self) -> u16 {
        self.bases
    }

    /// The CPU that a base belongs to: none is known.
    pub fn cpu_of(&self, _: CpuId) -> Option<u32> {
        None
    }

    /// The base of the calling thread.
    #[inline]
    pub fn here(&self) -> CpuId {
        let place = match &self.chance {
            None => number(),
            Some(chance) => chance.draw() as u32,
        };
        CpuId((place % u32::from(self.bases)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thread stays on its base, and threads are spread.
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
