//! Tools for measuring on this machine, which every live study uses.
//!
//! # Ground rules
//!
//! - Variants are measured in turn, and the order alternates ([`interleave`]): a disturbance
//!   affects all of them, and a drift cancels out.
//! - A figure is the median of its repetitions, with the least and the greatest beside it.
//! - Counts (device writes, context switches, system calls) are preferred to times: a busy machine
//!   does not change them.
//! - Times are shown next to the time of an uncontended atomic add in the same run
//!   ([`atomic_add_ns`]), so that a reader can tell a slow machine from slow code.

mod cold;
mod here;
#[expect(unsafe_code, reason = "a system call")]
mod resources;
#[expect(unsafe_code, reason = "the counter instruction")]
mod stopwatch;
mod thread;
mod usage;

use crate::progress::Progress;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub use cold::Evictor;
pub use here::{
    IDLE, busy_percent, cpu_times, cpus, disturbance, machine, other_threads, processor,
};
pub use stopwatch::Stopwatch;
pub use thread::{be_urgent, joined, on_cpus, sleep_with_slack, stay_on, stay_within, wait};
pub use usage::{ThreadUsage, Threads, Usage, timed};

/// Measures every variant once in each turn. Every second turn has the reverse order. Returns the
/// results of each variant in the order of the turns. `progress` shows the user under the name
/// `what` how many measurements are done.
///
/// `measure` gets the number of the variant. An error ends all measurements.
pub fn interleave<T, E>(
    what: &'static str,
    ways: usize,
    turns: usize,
    progress: &dyn Progress,
    mut measure: impl FnMut(usize) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    progress.begin(what, ways * turns);
    let mut results: Vec<Vec<T>> = (0..ways).map(|_| Vec::with_capacity(turns)).collect();
    for turn in 0..turns {
        for place in 0..ways {
            let way = if turn % 2 == 0 { place } else { ways - 1 - place };
            results[way].push(measure(way)?);
            progress.step();
        }
    }
    Ok(results)
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// How many values there were.
    pub count: usize,
}

impl Spread {
    /// Summarizes these values. Without values, the three numbers of the result are not-a-number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let [Some(&low), Some(&high)] = [values.first(), values.last()] else {
            return Spread::exactly(f64::NAN);
        };
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Spread { median, low, high, count: values.len() }
    }

    pub const fn exactly(value: f64) -> Spread {
        Spread { median: value, low: value, high: value, count: 1 }
    }

    /// Summarizes runs with different seeds. For an even number of runs, the median is the greater
    /// of the two middle values.
    pub fn of_runs(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
        let (low, high) = (at(0), at(values.len().saturating_sub(1)));
        Spread { median: at(values.len() / 2), low, high, count: values.len() }
    }

    /// Summarizes the ratios of a figure in two series of measurements.
    pub fn of_ratios<T>(above: &[T], below: &[T], figure: impl Fn(&T) -> f64) -> Spread {
        Spread::of(above.iter().zip(below).map(|(above, below)| figure(above) / figure(below)))
    }
}

impl From<f64> for Spread {
    fn from(value: f64) -> Spread {
        Spread::exactly(value)
    }
}

/// Returns a histogram of times from 1 ns to 18 minutes, with three significant digits. It never
/// grows, because that would take time during the measurement.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(1 << 40, 3).unwrap_or_else(|_| unreachable!("valid bounds"))
}

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
    use crate::progress::Hidden;

    #[test]
    fn turns_go_forwards_and_backwards() {
        let mut order = Vec::new();
        let mut clock = 0;
        let results = interleave("a test", 3, 2, &Hidden, |way| {
            order.push(way);
            clock += 1;
            Ok::<_, ()>(clock)
        });
        assert_eq!(order, [0, 1, 2, 2, 1, 0]);
        assert_eq!(results.unwrap(), [[1, 6], [2, 5], [3, 4]]);
        let fail = |way| if way == 1 { Err(way) } else { Ok(()) };
        assert_eq!(interleave("a test", 2, 2, &Hidden, fail), Err(1));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let of_three = Spread { median: 3.0, low: 1.0, high: 9.0, count: 3 };
        assert_eq!(Spread::of([3.0, 1.0, 9.0]), of_three);
        assert_eq!(Spread::of([4.0, 1.0, 9.0, 2.0]).median, 3.0);
        assert_eq!(Spread::of([5.0]), Spread::exactly(5.0));
        assert!(Spread::of([]).median.is_nan());
        assert_eq!(Spread::of_ratios(&[4.0, 9.0], &[2.0, 3.0], |one| *one).median, 2.5);
    }
}
