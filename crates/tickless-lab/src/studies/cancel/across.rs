//! Measures how long it takes to cancel a timer on another CPU's base.
//!
//! One thread owns the timers: it arms them on the base of its CPU. The other thread, on another
//! CPU, cancels them. The two threads take turns, so neither waits for the other's lock. The figure
//! is the cost of cache lines that are in another CPU's cache.

use super::calls::{Call, Finds, median};
use crate::measure::{self, MeasureError, Stopwatch, joined};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use tickless::{Timeout, Timers};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rhythm {
    /// The owner arms one timer and the other thread cancels it: every cache line, of the timer and
    /// of its base, comes from the owner's cache.
    OneByOne,
    /// The owner arms a batch and the other thread cancels all of it: each timer's cache line comes
    /// from the owner's cache, but those of the base only once.
    InBatches,
}

const OWNER: u32 = 0;
const OTHER: u32 = 1;

/// Lets the two threads arm and cancel alternately, `turns` times. Returns the median time of a
/// cancel, in counts of the stopwatch.
pub fn cancel_across(
    watch: &Stopwatch,
    cpus: [usize; 2],
    finds: Finds,
    rhythm: Rhythm,
    turns: usize,
) -> Result<f64, MeasureError> {
    const WHO: &str = "that cancels";
    let batch = match rhythm {
        Rhythm::OneByOne => 1,
        Rhythm::InBatches => 64,
    };
    let timers = Timers::builder().start()?;
    let batch: Vec<Timeout> = (0..batch).map(|_| timers.timeout(|_| ())).collect();
    let turn = AtomicU32::new(OWNER);
    let counts = thread::scope(|scope| {
        let (batch, turn) = (&batch, &turn);
        let owner = scope.spawn(move || {
            measure::stay_on(cpus[0])?;
            for _ in 0..turns {
                set_up(batch, finds);
                hand_over(turn, OTHER);
                wait_for(turn, OWNER);
            }
            Ok(())
        });
        let other = scope.spawn(move || {
            let stays = measure::stay_on(cpus[1]);
            let mut counts = Vec::with_capacity(turns);
            for _ in 0..turns {
                wait_for(turn, OTHER);
                counts.push(watch.counts(|| {
                    batch.iter().filter(|timer| Call::Sync.make(timer).is_some()).count()
                }));
                hand_over(turn, OWNER);
            }
            stays.map(|()| counts)
        });
        joined(owner, WHO)?;
        joined(other, WHO)
    })?;
    Ok(median(counts) / batch.len() as f64)
}

fn set_up(batch: &[Timeout], finds: Finds) {
    for timer in batch {
        // This fails only after a shut-down.
        let _ = timer.start(Duration::from_secs(3_600));
        if finds == Finds::Idle {
            timer.cancel();
        }
    }
}

fn hand_over(turn: &AtomicU32, to: u32) {
    // Release: pairs with the Acquire in `wait_for`.
    turn.store(to, Ordering::Release);
}

/// Spins until it is this thread's turn. Yields now and then, because the other thread may need
/// this CPU.
fn wait_for(turn: &AtomicU32, me: u32) {
    const SPINS: u32 = 500;
    let mut spins = 0;
    while turn.load(Ordering::Acquire) != me {
        spins += 1;
        if spins % SPINS == 0 {
            thread::yield_now();
        }
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both orders of calls end, also if both threads share a CPU, with a time above zero.
    #[test]
    fn turns_are_taken() {
        let watch = Stopwatch::new();
        let cpus = measure::cpus();
        let cpus = [cpus[0], *cpus.last().unwrap()];
        for rhythm in [Rhythm::OneByOne, Rhythm::InBatches] {
            let counts = cancel_across(&watch, cpus, Finds::Pending, rhythm, 20).unwrap();
            assert!(counts > 0.0, "{rhythm:?}");
        }
    }
}
