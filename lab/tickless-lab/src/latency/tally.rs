//! How late each wakeup was.

use super::Sample;
use crate::measure::{Usage, histogram};
use hdrhistogram::Histogram;
use std::fmt;
use tickless::time::Instant;

#[derive(Clone)]
pub struct Tally {
    /// The distribution of the lateness in nanoseconds.
    pub lateness: Histogram<u64>,
    /// Wakeups before their deadline. The histogram counts their lateness as zero.
    pub early: u64,
    /// Deadlines that passed without a wakeup, because the thread was late for an earlier one.
    pub missed: u64,
    /// The wakeup that ended the measurement, because it was later than
    /// [`Plan::break_at`](super::Plan) allows.
    pub broke: Option<Sample>,
    sum_ns: u128,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { lateness: histogram(), early: 0, missed: 0, broke: None, sum_ns: 0 }
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { lateness, early, missed, .. } = self;
        let (all, p50, max) = (lateness.len(), lateness.value_at_quantile(0.5), lateness.max());
        write!(f, "{all} wakeups, p50 {p50} ns, max {max} ns, {early} early, {missed} missed")
    }
}

impl Tally {
    pub fn record(&mut self, now: Instant, deadline: Instant) {
        self.early += u64::from(now < deadline);
        let late = (now - deadline).as_nanos() as u64;
        self.lateness.saturating_record(late);
        self.sum_ns += u128::from(late);
    }

    pub fn add(&mut self, other: &Tally) {
        // Both histograms have the same bounds, so this cannot fail.
        let _ = self.lateness.add(&other.lateness);
        self.early += other.early;
        self.missed += other.missed;
        self.broke = self.broke.or(other.broke);
        self.sum_ns += other.sum_ns;
    }

    pub fn average_ns(&self) -> f64 {
        if self.lateness.is_empty() { 0.0 } else { self.sum_ns as f64 / self.lateness.len() as f64 }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub tally: Tally,
    pub usage: Usage,
    /// How many threads of others ran or waited for a CPU, as each turn began and as it ended.
    pub others: Vec<u64>,
    /// Each turn, if this is the sum of several.
    pub turns: Vec<Slice>,
}

impl Slice {
    pub fn sum(slices: Vec<Slice>) -> Slice {
        let mut sum = Slice::default();
        for slice in &slices {
            sum.tally.add(&slice.tally);
            sum.usage = sum.usage.plus(slice.usage);
            sum.others.extend(&slice.others);
        }
        Slice { turns: slices, ..sum }
    }
}

/// The bins of a histogram: their upper ends in nanoseconds, each included in its bin. One more bin
/// counts everything above the last end.
pub struct Bins(Vec<u64>);

impl Bins {
    /// Returns bins that end at 1, 2, 5, 10, ... us, up to 5 s. They suit any distribution.
    pub fn logarithmic() -> Bins {
        let decades = (0..7).map(|decade| 1_000 * 10u64.pow(decade));
        Bins(decades.flat_map(|ns| [ns, 2 * ns, 5 * ns]).collect())
    }

    pub fn linear(most_us: u64) -> Bins {
        const BINS: u64 = 20;
        let width_us = most_us.div_ceil(BINS).max(1);
        Bins((1..=most_us.div_ceil(width_us)).map(|bin| bin * width_us * 1_000).collect())
    }

    /// Returns bins of one microsecond each, up to `most_us`. The first is for less than 1 us.
    pub fn microseconds(most_us: u32) -> Bins {
        Bins((1..=u64::from(most_us)).map(|us| us * 1_000 - 1).collect())
    }

    pub fn ends_us(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|end| end / 1_000)
    }

    /// Returns how many wakeups are in each bin. The last count is of the wakeups above all bins.
    pub fn counts(&self, tally: &Tally) -> Vec<u64> {
        let mut counts = vec![0; self.0.len() + 1];
        for value in tally.lateness.iter_recorded() {
            let lowest = tally.lateness.lowest_equivalent(value.value_iterated_to());
            let bin = self.0.partition_point(|&end| end < lowest);
            counts[bin] += value.count_since_last_iteration();
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless::time::Instant;

    /// Goal: late and early wakeups, missed deadlines and the average are what was recorded, also
    /// after one tally was added to another.
    #[test]
    fn a_tally_adds_up() {
        let mut one = Tally::default();
        one.record(Instant::from_nanos(150), Instant::from_nanos(100));
        one.record(Instant::from_nanos(90), Instant::from_nanos(100));
        let mut other = Tally::default();
        other.record(Instant::from_nanos(3_000_000_000), Instant::from_nanos(0));
        other.missed = 2;
        one.add(&other);
        assert_eq!((one.lateness.len(), one.early, one.missed), (3, 1, 2));
        assert_eq!(one.lateness.value_at_quantile(0.5), 50);
        assert!(one.lateness.max() >= 3_000_000_000 && one.lateness.min() == 0);
        assert_eq!(one.average_ns(), (50.0 + 3e9) / 3.0);
        assert_eq!(Tally::default().average_ns(), 0.0);
    }

    fn tally(late_us: &[u64]) -> Tally {
        let mut tally = Tally::default();
        late_us
            .iter()
            .for_each(|&us| tally.record(Instant::from_nanos(us * 1_000), Instant::from_nanos(0)));
        tally
    }

    /// Goal: every wakeup is in its bin, also at a bin's end, and those above all bins are counted.
    #[test]
    fn bins_hold_everything() {
        let tally = tally(&[0, 1, 2, 10, 11, 30_000_000]);
        assert_eq!(Bins::linear(20).counts(&tally).iter().sum::<u64>(), 6);
        assert_eq!(Bins::linear(20).counts(&tally)[0], 2);
        assert_eq!(Bins::linear(20).counts(&tally)[10], 1);
        assert_eq!(Bins::linear(20).counts(&tally)[20], 1);
        assert_eq!(Bins::logarithmic().counts(&tally).iter().sum::<u64>(), 6);
    }
}
