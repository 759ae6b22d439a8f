//! The figures of one sleeper.

use super::{Plan, Sleeper, Slice};
use serde::Serialize;

/// The figures of one sleeper. Times are nanoseconds, and null without a single wakeup.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the sleeper.
    pub sleeper: &'static str,
    /// The least lateness.
    pub min: Option<u64>,
    /// Its average.
    pub avg: Option<f64>,
    /// Its median.
    pub p50: Option<u64>,
    /// No later in 99 of 100.
    pub p99: Option<u64>,
    /// No later in 999 of 1000.
    pub p999: Option<u64>,
    /// The most.
    pub max: Option<u64>,
    /// Wakeups that were measured.
    pub samples: u64,
    /// Times any thread of the process was woken, each second.
    pub wakeups_per_s: f64,
    /// CPU time of the process, of one CPU's.
    pub cpu_percent: f64,
    /// Wakeups before their deadline.
    pub early: u64,
    /// Intervals without a wakeup of their own.
    pub missed: u64,
    /// Threads, or timers.
    pub threads: usize,
    /// From one wakeup to the next.
    pub interval_us: f64,
    /// Real-time priority; 0 for none.
    pub priority: u8,
    /// With `-h`: wakeups by microseconds.
    pub histogram: Option<Buckets>,
}

/// Wakeups by microseconds of lateness.
#[derive(Clone, Debug, Serialize)]
pub struct Buckets {
    /// The first: late by less than 1 us; and so on.
    pub counts: Vec<u64>,
    /// Later than all of them.
    pub above: u64,
}

impl Row {
    /// Of one sleeper; with a histogram of so many microseconds, if asked for.
    pub fn new(sleeper: Sleeper, plan: &Plan, slice: &Slice, histogram_us: Option<u32>) -> Row {
        let Slice { tally, usage } = slice;
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
            samples: tally.lateness.len(),
            wakeups_per_s: usage.voluntary_switches as f64 / real_s,
            cpu_percent: 100.0 * usage.cpu_s() / real_s,
            early: tally.early,
            missed: tally.missed,
            threads: plan.threads.len(),
            interval_us: plan.interval.as_nanos() as f64 / 1e3,
            priority: plan.priority.unwrap_or(0),
            histogram: histogram_us.map(|most_us| Buckets::of(slice, most_us)),
        }
    }

    /// One of its figures; none without a wakeup.
    pub fn quantile_ns(&self, quantile: Quantile) -> Option<f64> {
        match quantile {
            Quantile::Min => self.min.map(|ns| ns as f64),
            Quantile::Avg => self.avg,
            Quantile::P50 => self.p50.map(|ns| ns as f64),
            Quantile::P99 => self.p99.map(|ns| ns as f64),
            Quantile::P999 => self.p999.map(|ns| ns as f64),
            Quantile::Max => self.max.map(|ns| ns as f64),
        }
    }
}

impl Buckets {
    fn of(slice: &Slice, most_us: u32) -> Buckets {
        let mut buckets = Buckets { counts: vec![0; most_us as usize], above: 0 };
        let lateness = &slice.tally.lateness;
        for value in lateness.iter_recorded() {
            let us = lateness.lowest_equivalent(value.value_iterated_to()) / 1_000;
            let count = value.count_since_last_iteration();
            match buckets.counts.get_mut(us as usize) {
                Some(bucket) => *bucket += count,
                None => buckets.above += count,
            }
        }
        buckets
    }
}

/// Which figure of a [`Row`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantile {
    /// The least
    Min,
    /// The average
    Avg,
    /// The median
    P50,
    /// 99 of 100 are no later
    P99,
    /// 999 of 1000 are no later
    P999,
    /// The most
    Max,
}

impl Quantile {
    /// All of them.
    pub const ALL: [Quantile; 6] =
        [Quantile::Min, Quantile::Avg, Quantile::P50, Quantile::P99, Quantile::P999, Quantile::Max];

    /// The one of this name, in letters of either case.
    pub fn named(name: &str) -> Option<Quantile> {
        Quantile::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// As the command line and the JSON name it.
    pub const fn name(self) -> &'static str {
        match self {
            Quantile::Min => "min",
            Quantile::Avg => "avg",
            Quantile::P50 => "p50",
            Quantile::P99 => "p99",
            Quantile::P999 => "p999",
            Quantile::Max => "max",
        }
    }
}
