//! Finds whether a timer or a sleeping thread expires periodically, without keeping its history.
//!
//! Method: a majority vote over the distances between successive deadlines. One distance is the
//! candidate. It gains a vote with each distance that differs from it by at most a 32nd, and loses
//! one with each other distance. When it has no votes left, the next other distance becomes the
//! candidate. The eBPF programs vote.

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
    /// Returns the candidate if nearly all distances equal it; `None` if there is no period.
    pub fn period(&self) -> Option<u64> {
        let is_one = self.hits >= HITS_MIN && self.hits * 100 >= self.distances * HITS_PERCENT;
        is_one.then_some(self.period)
    }
}
