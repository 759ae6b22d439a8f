//! What was counted until some moment.

use crate::period::Vote;
use serde::Serialize;
use tickless_core::time::Ns;

/// Which kind of the kernel's timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Coarse timeouts, in a wheel of buckets.
    Wheel,
    /// High-resolution timers, in a queue by deadline.
    Queue,
    /// Some of both.
    Both,
}

impl Family {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Family::Wheel => "wheel",
            Family::Queue => "queue",
            Family::Both => "both",
        }
    }
}

/// How many powers of two distances are counted by.
pub const DISTANCES: usize = 32;

/// How far ahead timers were armed, by powers of two from a microsecond up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Distances {
    /// How many.
    pub counts: [u64; DISTANCES],
    /// Their sums, in nanoseconds.
    pub sums: [u64; DISTANCES],
}

impl Distances {
    /// Counts one.
    pub fn add(&mut self, ns: u64) {
        let place = ((ns | 1).ilog2() as usize).saturating_sub(10).min(DISTANCES - 1);
        self.counts[place] += 1;
        self.sums[place] = self.sums[place].wrapping_add(ns);
    }

    /// The mean of those within the power of two that the median is in: exact where all are alike.
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

/// What was counted of one process and callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Timers armed, those included that were pending.
    pub arms: u64,
    /// Timers taken off, for whatever reason.
    pub cancels: u64,
    /// Of these, how many were half of a re-arming or of an expiry.
    pub halves: u64,
    /// Armings of pending timers.
    pub rearms: u64,
    /// Timers that expired.
    pub expiries: u64,
    /// Idle CPUs woken.
    pub idle_wakeups: u64,
    /// Writes of timer devices.
    pub device_writes: u64,
    /// How far ahead.
    pub distances: Distances,
}

impl Counts {
    /// Cancels that were meant.
    pub fn cancelled(&self) -> u64 {
        self.cancels.saturating_sub(self.halves)
    }

    /// What was counted after `before`.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        self.each(before, u64::saturating_sub)
    }

    /// Both.
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
            distances: Distances {
                counts: places(&self.distances.counts, &other.distances.counts),
                sums: places(&self.distances.sums, &other.distances.sums),
            },
        }
    }
}

/// One process and callback.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The process; 0 for the kernel itself.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// What the timer calls.
    pub function: String,
    /// Which kind of timer.
    pub family: Family,
    /// What it did.
    pub counts: Counts,
}

/// Something that expires again and again: a timer, or a thread that sleeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its place among the rows.
    pub row: usize,
    /// When it expires.
    pub vote: Vote,
}

/// What was counted until some moment. Rows and sources stay at their places in later ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at: Ns,
    /// Each process and callback.
    pub rows: Vec<Row>,
    /// Each that expires.
    pub sources: Vec<Source>,
    /// Events that were lost.
    pub lost: u64,
    /// Whether writes of timer devices can be seen on this machine.
    pub sees_device_writes: bool,
    /// Whether interrupts of the timer device can be seen, and with them who woke an idle CPU.
    pub sees_wakeups: bool,
    /// Processes and callbacks, or periodic timers, for which there was no place.
    pub refused: u64,
    /// CPUs of whose idle threads the kernel hands out nothing, since the start.
    pub unseen_idle: Vec<u16>,
    /// CPU time of this program, in nanoseconds.
    pub own_ns: u64,
    /// CPU time of what runs in the kernel at each event, in nanoseconds: an estimate from samples;
    /// none where it cannot be told.
    pub kernel_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_is_exact_where_all_are_alike() {
        let mut distances = Distances::default();
        assert_eq!(distances.typical_ns(), None);
        (0..10).for_each(|_| distances.add(4_000_000));
        distances.add(1);
        distances.add(u64::MAX);
        assert_eq!(distances.typical_ns(), Some(4_000_000));
    }

    #[test]
    fn halves_are_no_cancels() {
        let before = Counts { arms: 2, cancels: 3, halves: 1, ..Counts::default() };
        let after = Counts { arms: 9, cancels: 13, halves: 8, ..Counts::default() };
        let since = after.since(&before);
        assert_eq!((since.arms, since.cancelled()), (7, 3));
        assert_eq!(before.plus(&since), after);
    }
}
