//! Measures short times: in cycles where the CPU can count them, otherwise in nanoseconds.
//!
//! A call of some tens of nanoseconds takes no longer than the timing of it. So the stopwatch
//! measures its own cost first and subtracts it. Where possible, callers time many calls at once.

use std::hint::black_box;
use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    /// The number of counts in a nanosecond; 1 if the counter counts nanoseconds.
    per_ns: f64,
    own: u64,
    origin: Instant,
}

impl Stopwatch {
    /// Makes a stopwatch. Takes 20 ms to measure the counter's speed and the stopwatch's own cost.
    pub fn calibrated() -> Stopwatch {
        const CALIBRATION_MS: u128 = 20;
        const TRIES: usize = 1_001;
        let origin = Instant::now();
        let mut watch = Stopwatch { per_ns: 1.0, own: 0, origin };
        let from = watch.count();
        while origin.elapsed().as_millis() < CALIBRATION_MS {
            std::hint::spin_loop();
        }
        let counted = watch.count() - from;
        if HAS_CYCLES {
            watch.per_ns = counted as f64 / origin.elapsed().as_nanos() as f64;
        }
        let mut own: Vec<u64> = (0..TRIES).map(|_| watch.counts(|| black_box(()))).collect();
        own.sort_unstable();
        watch.own = own[TRIES / 2];
        watch
    }

    /// Returns the time of `work` in counts, less the time that measuring takes.
    #[inline]
    pub fn counts<T>(&self, work: impl FnOnce() -> T) -> u64 {
        let from = self.count();
        black_box(work());
        (self.count() - from).saturating_sub(self.own)
    }

    pub fn ns(&self, counts: f64) -> f64 {
        counts / self.per_ns
    }

    /// Returns how many cycles of the time-stamp counter pass in a nanosecond; `None` on a machine
    /// where the stopwatch counts something else.
    pub fn cycles_per_ns(&self) -> Option<f64> {
        HAS_CYCLES.then_some(self.per_ns)
    }

    #[inline]
    fn count(&self) -> u64 {
        cycles().unwrap_or_else(|| self.origin.elapsed().as_nanos() as u64)
    }
}

#[cfg(target_arch = "x86_64")]
const HAS_CYCLES: bool = true;
#[cfg(not(target_arch = "x86_64"))]
const HAS_CYCLES: bool = false;

/// Reads the time-stamp counter, after all earlier loads and before all later instructions.
#[cfg(target_arch = "x86_64")]
#[inline]
fn cycles() -> Option<u64> {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 CPU has both instructions.
    Some(unsafe {
        _mm_lfence();
        let cycles = _rdtsc();
        _mm_lfence();
        cycles
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_time_is_measured() {
        let watch = Stopwatch::calibrated();
        let shortest = |work: &dyn Fn()| {
            let counts = (0..50).map(|_| watch.counts(work)).min().unwrap();
            watch.ns(counts as f64)
        };
        let wait = shortest(&|| {
            let begun = Instant::now();
            while begun.elapsed().as_micros() < 50 {}
        });
        assert!((49_000.0..80_000.0).contains(&wait), "{wait} ns instead of 50 us");
        let nothing = shortest(&|| ());
        assert!(nothing < 1_000.0, "{nothing} ns for nothing");
    }
}
