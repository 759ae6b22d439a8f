//! A histogram of durations by powers of two, in fixed memory.
//!
//! Counting costs one shift and one addition, little enough for every expiry. A bucket is as wide
//! as all buckets below it, so that a quantile is known to within a factor of two.

use crate::time::Ns;
use core::time::Duration;

/// The number of buckets. The last one counts all durations from 4.6 minutes on.
pub const BUCKETS: usize = 40;

/// Counts of durations by powers of two. Bucket 0 counts 0 ns, bucket n 2^(n-1) to 2^n - 1 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl Histogram {
    /// Returns an empty histogram.
    pub const fn new() -> Histogram {
        Histogram { counts: [0; BUCKETS], sum_ns: 0 }
    }

    /// Counts a duration. O(1).
    #[inline]
    pub fn count(&mut self, took: Duration) {
        self.count_ns(Ns::from_duration(took));
    }

    /// Counts a duration in the bucket of its power of two.
    #[inline]
    pub(crate) fn count_ns(&mut self, took: Ns) {
        // `capped` is at most the last bucket's lower bound, so that the shift cannot overflow.
        let capped = took.0.min(1 << (BUCKETS - 2));
        let bucket = (capped << 1 | 1).ilog2() as usize;
        self.counts[bucket] += 1;
        // The sum is allowed to wrap around, which takes 584 years of durations.
        self.sum_ns = self.sum_ns.wrapping_add(took.0);
    }

    /// Returns the count of each bucket.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the longest duration of a bucket; 584 years for the last one.
    pub const fn longest_in(bucket: usize) -> Duration {
        let ns = if bucket >= BUCKETS - 1 { u64::MAX } else { (1 << bucket) - 1 };
        Duration::from_nanos(ns)
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations that were counted.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// Returns an upper bound on a quantile: of every 1000 counted durations, at least `per_mille`
    /// were not longer. It is the longest duration of the bucket that contains the quantile. `None`
    /// if nothing was counted.
    pub fn quantile(&self, per_mille: u64) -> Option<Duration> {
        let total = self.total();
        let rank = (u128::from(total) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        });
        reached.map(Histogram::longest_in)
    }

    /// Returns the sum of two histograms.
    #[must_use]
    pub fn plus(mut self, other: &Histogram) -> Histogram {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_the_bucket_that_takes_it() {
        for took in [0, 1, 2, 3, 4, 7, 8, 1_000_000, (1 << 38) - 1, 1 << 38, u64::MAX] {
            let mut histogram = Histogram::new();
            histogram.count(Duration::from_nanos(took));
            let bucket = histogram.counts().iter().position(|&count| count == 1).unwrap();
            assert!(
                Duration::from_nanos(took) <= Histogram::longest_in(bucket),
                "{took} in {bucket}"
            );
            assert!(
                bucket == 0 || Duration::from_nanos(took) > Histogram::longest_in(bucket - 1),
                "{took}"
            );
        }
    }

    #[test]
    fn quantiles_are_upper_bounds() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(500), None);
        (0..990).for_each(|_| histogram.count(Duration::from_nanos(100)));
        (0..10).for_each(|_| histogram.count(Duration::from_nanos(5_000)));
        let found = [0, 500, 990, 991, 1000, 2000].map(|per_mille| histogram.quantile(per_mille));
        let (low, high) = (Some(Duration::from_nanos(127)), Some(Duration::from_nanos(8_191)));
        assert_eq!(found, [low, low, low, high, high, high]);
        let twice = histogram.plus(&histogram.clone());
        assert_eq!((twice.total(), twice.sum()), (2_000, Duration::from_nanos(298_000)));
    }
}
