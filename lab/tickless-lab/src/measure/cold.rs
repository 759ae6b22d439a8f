//! Makes the caches cold: everything in them is evicted.
//!
//! To do so it reads and writes more memory than the largest cache holds. It does not flush single
//! cache lines, because the measuring code does not know where another crate keeps its data.

use std::fs;
use std::hint::black_box;

#[derive(Debug)]
pub struct Evictor {
    memory: Vec<u8>,
}

const LINE: usize = 64;

impl Evictor {
    /// Makes an evictor with twice as much memory as the largest cache, at most 256 MB.
    pub fn of_largest_cache() -> Evictor {
        const UNKNOWN: usize = 32 << 20;
        const MOST: usize = 256 << 20;
        let largest = largest_cache().unwrap_or(UNKNOWN);
        Evictor { memory: vec![1; (2 * largest).clamp(1 << 20, MOST)] }
    }

    /// Evicts all cached lines by writing to each line of the evictor's memory. Takes some ms.
    pub fn evict(&mut self) {
        for line in self.memory.iter_mut().step_by(LINE) {
            *line = line.wrapping_add(1);
        }
        black_box(&self.memory);
    }

    pub fn bytes(&self) -> usize {
        self.memory.len()
    }
}

fn largest_cache() -> Option<usize> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        // The kernel prints each size in K.
        text.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1 << 10)
    };
    caches.flatten().filter_map(size).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_touched() {
        let mut evictor = Evictor { memory: vec![1; 4 * LINE] };
        evictor.evict();
        evictor.evict();
        let touched = evictor.memory.iter().step_by(LINE).all(|&byte| byte == 3);
        assert!(touched, "{:?}", evictor.memory);
        assert!(Evictor::of_largest_cache().bytes() >= 1 << 20);
    }
}
