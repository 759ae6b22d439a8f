//! The figures of one sleeper, which is a way to sleep.

use super::{Bins, Plan, Sleeper, Slice, Tally};
use crate::measure::Spread;
use serde::Serialize;

/// The results for one way to sleep (a *sleeper*), such as `timerfd`: how late threads woke, in
/// nanoseconds, and counts. A time is `None` if no thread woke.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub sleeper: &'static str,
    pub min: Option<u64>,
    pub avg: Option<f64>,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
    /// The ways to sleep were measured alternately, in this many turns.
    pub turns: usize,
    /// For the average and each quantile: the least and the greatest of the values of all turns.
    pub spread: Spreads,
    pub samples: u64,
    pub wakeups_per_s: f64,
    pub cpu_percent: f64,
    pub early: u64,
    pub missed: u64,
    /// The number of threads that slept, or of timers if the sleeper is one of this library's.
    pub threads: usize,
    pub interval_us: f64,
    /// Real-time priority; 0 for none.
    pub priority: u8,
    /// With `-h`: the number of wakeups for each microsecond of lateness.
    pub histogram: Option<Buckets>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spreads {
    pub avg: Option<[f64; 2]>,
    pub p50: Option<[f64; 2]>,
    pub p99: Option<[f64; 2]>,
}

impl Spreads {
    /// Returns how much the average and quantiles differ between turns: the least and the greatest.
    fn of(turns: &[Tally]) -> Spreads {
        let woken = || turns.iter().filter(|tally| !tally.lateness.is_empty());
        let ends = |of: &dyn Fn(&Tally) -> f64| {
            let Spread { low, high, .. } = Spread::of(woken().map(of));
            low.is_finite().then_some([low, high])
        };
        let quantile = |quantile: f64| {
            ends(&move |tally: &Tally| tally.lateness.value_at_quantile(quantile) as f64)
        };
        Spreads { avg: ends(&Tally::average_ns), p50: quantile(0.5), p99: quantile(0.99) }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Buckets {
    /// The first entry counts wakeups that were late by less than 1 us, the second those by 1 to 2
    /// us, and so on.
    pub counts: Vec<u64>,
    pub above: u64,
}

impl Row {
    /// Computes a sleeper's figures. With `histogram_us`, adds a histogram up to that lateness.
    pub fn new(sleeper: Sleeper, plan: &Plan, slice: &Slice, histogram_us: Option<u32>) -> Row {
        let Slice { tally, usage, turns } = slice;
        let some = |value: u64| (!tally.lateness.is_empty()).then_some(value);
        let quantile = |quantile| some(tally.lateness.value_at_quantile(quantile));
        let real_s = usage.real_s.max(f64::MIN_POSITIVE);
        Row {
            sleeper: sleeper.name(),
            min: some(tally.lateness.min()),
            avg: (!tally.lateness.is_empty()).then(|| tally.average_ns()),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: some(tally.lateness.max()),
            turns: turns.len(),
            spread: Spreads::of(turns),
            samples: tally.lateness.len(),
            wakeups_per_s: usage.voluntary_switches as f64 / real_s,
            cpu_percent: 100.0 * usage.cpu_s() / real_s,
            early: tally.early,
            missed: tally.missed,
            threads: plan.threads.len(),
            interval_us: plan.interval.as_nanos() as f64 / 1e3,
            priority: plan.priority.unwrap_or(0),
            histogram: histogram_us.map(|most_us| Buckets::of(tally, most_us)),
        }
    }
}

impl Buckets {
    /// Counts wakeups by lateness, in buckets of 1 us up to `most_us`.
    fn of(tally: &Tally, most_us: u32) -> Buckets {
        let mut counts = Bins::microseconds(most_us).counts(tally);
        let above = counts.pop().unwrap_or(0);
        Buckets { counts, above }
    }
}
