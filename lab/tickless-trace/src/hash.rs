//! A fast hash for the addresses of timers and the numbers of threads, of which a trace repeats a
//! few many million times.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies by an odd number and takes the highest bits, as D. Knuth describes it.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, variant: isize) {
        self.write_u64(variant as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
