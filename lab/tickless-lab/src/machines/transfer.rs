//! Measures on this host how long a cache line takes from the CPU that has written it to another.

use crate::error::LabError;
use crate::measure::{Spread, on_cpus};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tickless_machine::random::Random;

/// Aligned to 256 bytes: a prefetcher that fetches lines in pairs, or the line that follows, never
/// fetches the next word too.
#[repr(align(256))]
#[derive(Default)]
struct Apart(AtomicU64);

const LINES: u64 = 64;

/// Returns the ns in which the last of these CPUs loads a line that the first one has written.
///
/// In each round the first CPU writes to each line the number of another one. The last CPU then
/// follows these numbers, so no load can begin before the one before it has ended. The median is
/// not disturbed by rounds in which one of the threads has lost its CPU.
pub fn transfer(cpus: [usize; 2], rounds: u64) -> Result<Spread, LabError> {
    let next = cycle();
    let lines: Vec<Apart> = next.iter().map(|_| Apart::default()).collect();
    let turn = Apart::default();
    let both = on_cpus(&cpus, "that passes cache lines", |side| {
        let one_round = |round: u64| {
            let mine = 2 * round + side as u64;
            while turn.0.load(Ordering::Acquire) != mine {
                spin_loop();
            }
            let begun = Instant::now();
            if side == 0 {
                next.iter().zip(&lines).for_each(|(next, line)| {
                    line.0.store(*next, Ordering::Relaxed);
                });
            } else {
                let follow = |at: u64, _| lines[at as usize].0.load(Ordering::Relaxed);
                black_box((0..LINES).fold(0, follow));
            }
            let ns = begun.elapsed().as_nanos() as f64;
            turn.0.store(mine + 1, Ordering::Release);
            ns / LINES as f64
        };
        (0..rounds).map(one_round).collect::<Vec<f64>>()
    })?;
    Ok(Spread::of(both.into_iter().next_back().unwrap_or_default()))
}

/// Returns for each line the number of the line that is read after it. All lines form one random
/// cycle (Sattolo's algorithm), the same in every run. In a regular order, a prefetcher would guess
/// the next line and halve the time.
fn cycle() -> Vec<u64> {
    let mut random = Random::new(LINES);
    let mut next: Vec<u64> = (0..LINES).collect();
    for last in (1..LINES).rev() {
        next.swap(last as usize, random.below(last) as usize);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cpus;

    /// Goal: the cycle visits every line once, and a load of a line of another CPU takes longer
    /// than one of the own cache.
    #[test]
    fn every_line_is_passed_once_in_a_round() {
        let next = cycle();
        let mut seen = [false; LINES as usize];
        (0..LINES).fold(0, |at, _| {
            assert!(!std::mem::replace(&mut seen[at as usize], true), "{at} twice");
            next[at as usize]
        });
        let [first, .., last] = cpus()[..] else { return };
        let ns = transfer([first, last], 2_000).unwrap();
        assert!(ns.median > 2.0 && ns.median < 10_000.0, "{ns:?}");
    }
}
