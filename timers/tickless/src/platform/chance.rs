//! A seeded stream of random numbers, for shuffling. Equal seeds give equal streams.

use core::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers, from which several threads can draw (SplitMix64: Steele, Lea and
/// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[derive(Debug)]
pub struct Chance(AtomicU64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(AtomicU64::new(seed))
    }

    pub fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn shuffle<T>(&self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, (self.draw() % (last as u64 + 1)) as usize);
        }
    }
}
