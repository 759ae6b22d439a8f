//! Xorshift. Every run has the same numbers, and the peers of `foreign/` compute them too.

use std::time::Duration;

pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        Random(0x2545_f491_4f6c_dd1d)
    }

    pub fn seeded(seed: u64) -> Random {
        Random(Random::new().0 ^ (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    pub fn seconds(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_nanos(from * 1_000_000_000 + self.below((to - from) * 1_000_000_000))
    }

    pub fn many(&mut self, count: usize, from: u64, to: u64) -> Vec<Duration> {
        (0..count).map(|_| self.seconds(from, to)).collect()
    }
}
