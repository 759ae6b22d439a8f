//! The counts until some time.

use serde::Serialize;
use std::collections::BTreeMap;
use tickless_core::time::Ns;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Wheel,
    Queue,
    #[default]
    Both,
    /// The process uses CPU time, and no timers.
    None,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Family::Wheel => "wheel",
            Family::Queue => "queue",
            Family::Both => "both",
            Family::None => "-",
        }
    }
}

/// The number of columns of the histogram [`Distances`], one for each power of two.
pub const DISTANCES: usize = 32;

/// A histogram of how far ahead timers were armed. The first column is for distances below 2,048
/// ns. The upper bound of each further column is twice that of the column before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Distances {
    pub counts: [u64; DISTANCES],
    /// For each column, the sum of the distances, in nanoseconds.
    pub sums: [u64; DISTANCES],
}

impl Distances {
    /// Counts a distance (from arming to deadline) in the place of its power of two.
    pub fn add(&mut self, ns: u64) {
        let place = ((ns | 1).ilog2() as usize).saturating_sub(10).min(DISTANCES - 1);
        self.counts[place] += 1;
        self.sums[place] = self.sums[place].wrapping_add(ns);
    }

    /// Returns an estimate of the median: the mean distance in the column that contains the
    /// median. The estimate is exact if all distances are equal.
    pub fn typical_ns(&self) -> Option<u64> {
        let all: u64 = self.counts.iter().sum();
        let mut passed = 0;
        for (count, sum) in self.counts.iter().zip(&self.sums) {
            passed += count;
            if passed * 2 >= all && *count > 0 {
                return Some(sum / count);
            }
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub arms: u64,
    /// Timers removed, for any reason.
    pub cancels: u64,
    /// How many of the removals in `cancels` were only the first step of a rearming or an expiry.
    pub halves: u64,
    pub rearms: u64,
    pub expiries: u64,
    pub idle_wakeups: u64,
    pub device_writes: u64,
    /// Timers whose end the kernel did not show: it was noticed when they were armed again.
    pub unseen: u64,
    pub distances: Distances,
}

impl Counts {
    /// Returns the number of timers that were cancelled: removed, but not to rearm or expire them.
    pub fn cancelled(&self) -> u64 {
        self.cancels.saturating_sub(self.halves)
    }

    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        self.each(before, u64::saturating_sub)
    }

    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        self.each(other, u64::saturating_add)
    }

    fn each(&self, other: &Counts, of: impl Fn(u64, u64) -> u64) -> Counts {
        let places =
            |a: &[u64; DISTANCES], b: &[u64; DISTANCES]| std::array::from_fn(|at| of(a[at], b[at]));
        Counts {
            arms: of(self.arms, other.arms),
            cancels: of(self.cancels, other.cancels),
            halves: of(self.halves, other.halves),
            rearms: of(self.rearms, other.rearms),
            expiries: of(self.expiries, other.expiries),
            idle_wakeups: of(self.idle_wakeups, other.idle_wakeups),
            device_writes: of(self.device_writes, other.device_writes),
            unseen: of(self.unseen, other.unseen),
            distances: Distances {
                counts: places(&self.distances.counts, &other.distances.counts),
                sums: places(&self.distances.sums, &other.distances.sums),
            },
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The process; 0 for the kernel itself.
    pub pid: u32,
    pub process: String,
    pub function: String,
    pub family: Family,
    pub counts: Counts,
}

/// A majority vote over the distances between successive deadlines of a timer or a sleeping thread.
/// It shows, without keeping a history, whether they expire periodically. The eBPF programs vote.
///
/// One distance is the candidate. It gains a vote with each distance that differs from it by at
/// most a 32nd, and loses one with each distance that differs by more. When it has no votes left,
/// the next distance that differs becomes the candidate.
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

/// How long the threads of a process ran, and how often one of them left its CPU. Up to a tick of
/// time is added later, where a thread still runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Process {
    pub name: String,
    pub cpu_ns: u64,
    pub switches: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub row: usize,
    pub vote: Vote,
}

/// All counts from the start of counting until the time `at`. A row or source has the same index in
/// all later snapshots.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    pub at: Ns,
    pub rows: Vec<Row>,
    /// What ran, by the number of the process.
    pub processes: BTreeMap<u32, Process>,
    pub sources: Vec<Source>,
    pub sees_device_writes: bool,
    pub sees_wakeups: bool,
    pub refused: u64,
    /// Events that the programs did not count, although the kernel showed them.
    pub missed: u64,
    /// For how long CPUs showed no events although threads ran there, all CPUs together.
    pub unseen_ns: u64,
    /// The process whose thread ran, at least at first, when that was last so.
    pub unseen_after: String,
    pub own_ns: u64,
    pub kernel_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_typical_distance_of_equal_ones_is_exact() {
        let mut distances = Distances::default();
        assert_eq!(distances.typical_ns(), None);
        (0..10).for_each(|_| distances.add(4_000_000));
        distances.add(1);
        distances.add(u64::MAX);
        assert_eq!(distances.typical_ns(), Some(4_000_000));
    }

    #[test]
    fn removals_for_a_rearming_are_no_cancels() {
        let before = Counts { arms: 2, cancels: 3, halves: 1, ..Counts::default() };
        let after = Counts { arms: 9, cancels: 13, halves: 8, ..Counts::default() };
        let since = after.since(&before);
        assert_eq!((since.arms, since.cancelled()), (7, 3));
        assert_eq!(before.plus(&since), after);
    }
}
