//! A measure of the machine's speed: the time of an uncontended atomic add.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Returns the nanoseconds of an uncontended atomic add: the least of five tries, each with 4,000
/// adds. Takes about a tenth of a millisecond.
pub fn atomic_add_ns() -> f64 {
    const TRIES: usize = 5;
    const ADDS: u32 = 4_000;
    let word = AtomicU64::new(0);
    let one_try = || {
        let begun = Instant::now();
        for _ in 0..ADDS {
            black_box(&word).fetch_add(1, Ordering::Relaxed);
        }
        begun.elapsed().as_nanos() as f64 / f64::from(ADDS)
    };
    (0..TRIES).map(|_| one_try()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_takes_some_nanoseconds() {
        let ns = atomic_add_ns();
        assert!(ns > 0.05 && ns < 10_000.0, "{ns}");
    }
}
