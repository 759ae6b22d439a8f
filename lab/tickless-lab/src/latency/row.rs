//! The figures of one sleeper, which is a way to sleep.

use super::{Bins, Plan, Sleeper, Slice, Tally};
use crate::measure::Spread;
use serde::Serialize;

/// How late threads woke, in nanoseconds, and counts: in a turn, or in all turns together. A time
/// is `None` if no thread woke.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    pub min: Option<u64>,
    pub avg: Option<f64>,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
    pub samples: u64,
    pub missed: u64,
    pub cpu_percent: f64,
    /// How many threads of others ran or waited for a CPU, on average of the begin and the end of
    /// each turn; `None` if the kernel does not tell.
    pub other_threads: Option<f64>,
}

impl Figures {
    fn of(Slice { tally, usage, others, .. }: &Slice) -> Figures {
        let some = |value: u64| (!tally.lateness.is_empty()).then_some(value);
        let quantile = |quantile| some(tally.lateness.value_at_quantile(quantile));
        Figures {
            min: some(tally.lateness.min()),
            avg: (!tally.lateness.is_empty()).then(|| tally.average_ns()),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: some(tally.lateness.max()),
            samples: tally.lateness.len(),
            missed: tally.missed,
            cpu_percent: 100.0 * usage.cpu_s() / usage.real_s.max(f64::MIN_POSITIVE),
            other_threads: (!others.is_empty())
                .then(|| others.iter().sum::<u64>() as f64 / others.len() as f64),
        }
    }
}

/// The results for one way to sleep (a *sleeper*), such as `timerfd`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub sleeper: &'static str,
    #[serde(flatten)]
    pub figures: Figures,
    /// The ways to sleep were measured alternately, in this many turns.
    pub turns: usize,
    /// Of each turn in their order, without those that were not begun because of an interrupt.
    pub by_turn: Vec<Figures>,
    /// For the average and each quantile: the least and the greatest of the values of all turns.
    pub spread: Spreads,
    pub wakeups_per_s: f64,
    pub early: u64,
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
    fn of(turns: &[Figures]) -> Spreads {
        let ends = |of: fn(&Figures) -> Option<f64>| {
            let Spread { low, high, .. } = Spread::of(turns.iter().filter_map(of));
            low.is_finite().then_some([low, high])
        };
        Spreads {
            avg: ends(|turn| turn.avg),
            p50: ends(|turn| Some(turn.p50? as f64)),
            p99: ends(|turn| Some(turn.p99? as f64)),
        }
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
        let Slice { tally, usage, turns, .. } = slice;
        let is_begun = |turn: &&Slice| turn.tally.lateness.len() + turn.tally.missed > 0;
        let by_turn: Vec<Figures> = turns.iter().filter(is_begun).map(Figures::of).collect();
        let real_s = usage.real_s.max(f64::MIN_POSITIVE);
        Row {
            sleeper: sleeper.name(),
            figures: Figures::of(slice),
            turns: turns.len(),
            spread: Spreads::of(&by_turn),
            by_turn,
            wakeups_per_s: usage.voluntary_switches as f64 / real_s,
            early: tally.early,
            threads: plan.threads.len(),
            interval_us: plan.interval.as_nanos() as f64 / 1e3,
            priority: plan.priority.unwrap_or(0),
            histogram: histogram_us.map(|most_us| Buckets::of(tally, most_us)),
        }
    }
}

impl Buckets {
    fn of(tally: &Tally, most_us: u32) -> Buckets {
        let mut counts = Bins::microseconds(most_us).counts(tally);
        let above = counts.pop().unwrap_or(0);
        Buckets { counts, above }
    }
}
