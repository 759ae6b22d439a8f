//! Finds out whether a timer or a sleeping thread expires periodically, without keeping its
//! history.
//!
//! Method: a majority vote over the distances between successive deadlines. One distance is the
//! candidate. It gains a vote with each distance that differs from it by at most a 32nd, and loses
//! one with each other distance. When it has no votes left, the next other distance becomes the
//! candidate. The eBPF programs vote in the same way.

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vote {
    pub period: u64,
    pub votes: u64,
    /// How many distances equalled the candidate, including the one that became the candidate.
    pub hits: u64,
    /// How many distances were counted, beginning with the one that became the candidate.
    pub distances: u64,
    /// The deadline of the last expiry, in nanoseconds on the timer's clock; 0 for none.
    pub last: u64,
}

/// The candidate is a period only if at least so many distances equalled it.
const HITS_MIN: u64 = 4;

/// The candidate is a period only if at least this percentage of the distances equalled it.
const HITS_PERCENT: u64 = 90;

impl Vote {
    /// Counts an expiry of a timer that was due at `deadline`.
    pub fn expired(&mut self, deadline: u64) {
        let last = std::mem::replace(&mut self.last, deadline);
        if last == 0 || deadline <= last {
            return;
        }
        let apart = deadline - last;
        self.distances += 1;
        if apart.abs_diff(self.period) <= self.period >> 5 {
            self.votes += 1;
            self.hits += 1;
        } else if self.votes > 0 {
            self.votes -= 1;
        } else {
            *self = Vote { period: apart, votes: 1, hits: 1, distances: 1, last: deadline };
        }
    }

    /// Returns the candidate if nearly all distances equal it; `None` if there is no period.
    pub fn period(&self) -> Option<u64> {
        let is_one = self.hits >= HITS_MIN && self.hits * 100 >= self.distances * HITS_PERCENT;
        is_one.then_some(self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(deadlines: impl IntoIterator<Item = u64>) -> Vote {
        let mut vote = Vote::default();
        deadlines.into_iter().for_each(|deadline| vote.expired(deadline));
        vote
    }

    #[test]
    fn periods_are_distinguished_from_chance() {
        assert_eq!(vote((1..20).map(|n| n * 1_000)).period(), Some(1_000));
        assert_eq!(vote((1..5).map(|n| n * 1_000)).period(), None, "too few");
        assert_eq!(vote([1, 4, 5, 9, 14, 15, 22, 23, 31, 40, 41]).period(), None);
        let drifting = (1..20).map(|n| n * 1_000 + n % 3 * 10);
        assert!(vote(drifting).period().is_some(), "a relative sleep, a little late each time");
    }

    /// Goal: a first distance that does not recur does not remain the candidate, and a different
    /// distance in the middle does not end the period.
    #[test]
    fn the_majority_wins() {
        let odd_first = [100].into_iter().chain((1..20).map(|n| 5_000 + n * 1_000));
        assert_eq!(vote(odd_first).period(), Some(1_000));
        let moved = (1..20).map(|n| n * 1_000).chain((20..40).map(|n| n * 1_000 + 300));
        assert_eq!(vote(moved).period(), Some(1_000));
    }
}
