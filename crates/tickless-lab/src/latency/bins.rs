//! A histogram of wakeups by how late they were.

use super::Tally;

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

    pub fn ends_us(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|end| end / 1_000)
    }

    /// Returns the number of wakeups in each bin, and at last the number above all bins.
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

    fn tally(late_us: &[u64]) -> Tally {
        let mut tally = Tally::default();
        late_us
            .iter()
            .for_each(|&us| tally.record(Instant::from_nanos(us * 1_000), Instant::from_nanos(0)));
        tally
    }

    /// Goal: every wakeup is in its bin, those at a bin's end included, and those above all bins
    /// are counted too.
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
