//! Which periodic timers of a trace expire together, and what spreading them would change.
//!
//! A high-resolution timer counts as periodic if most distances between its expiries are equal, and
//! nearly all are multiples of that distance. Distances are those of soft deadlines, which are
//! exact, not of the times at which the kernel expired them. Timers with the same callback function
//! and the same period form a group. Their recorded phases (offsets from multiples of the period)
//! are compared with those that [`Phase::Spread`] would have given them, one timer after the other.

use crate::hash::NumberMap;
use crate::read::{Context, Event, NameId, SLEEPER_FUNCTION, TimerAddr, Trace};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tickless_core::phase::{Phase, Phases};
use tickless_core::time::Ns;

#[derive(Debug, Serialize)]
pub struct Overlap {
    pub function: String,
    pub period_ns: u64,
    pub expirations: u64,
    pub within_ns: u64,
    pub together: u64,
    pub recorded: PhaseSet,
    pub spread: PhaseSet,
    /// The threads that were seen to arm these timers, outside of interrupts.
    #[serde(skip)]
    pub armed_by: BTreeSet<u32>,
}

#[derive(Debug, Serialize)]
pub struct PhaseSet {
    pub phases_ns: Vec<u64>,
    pub gap_min_ns: u64,
    pub gap_max_ns: u64,
    pub together_timers: usize,
}

/// Finds groups of periodic timers that can expire together, the group with the most expiries
/// first. O(n log n) in the number of expiries.
pub(super) fn find(trace: &Trace) -> Vec<Overlap> {
    let mut groups: BTreeMap<(NameId, u64), Vec<Expiries>> = BTreeMap::new();
    for timer in expiries(trace) {
        if let Some(period) = period(&timer.deadlines) {
            groups.entry((timer.function, period)).or_default().push(timer);
        }
    }
    let mut found = Vec::new();
    for ((function, period), timers) in groups {
        if timers.len() > 1 {
            let armed_by = timers.iter().filter_map(|timer| timer.armed_by).collect();
            let deadlines: Vec<Vec<u64>> = timers.into_iter().map(|it| it.deadlines).collect();
            let overlap = Overlap::of(trace.names.name(function), period, &deadlines);
            found.push(Overlap { armed_by, ..overlap });
        }
    }
    found.sort_by_key(|overlap| Reverse(overlap.expirations));
    found
}

struct Expiries {
    function: NameId,
    deadlines: Vec<u64>,
    /// The last thread that armed it outside of interrupts; `None` if none did.
    armed_by: Option<u32>,
}

/// Returns the deadlines at which each high-resolution timer expired, in the order in which the
/// timers first expired. The sleeps of a thread count as one timer, since each can have its timer
/// at a different place on the thread's stack.
fn expiries(trace: &Trace) -> Vec<Expiries> {
    let sleep = trace.names.find(SLEEPER_FUNCTION);
    let mut places: NumberMap<Source, usize> = NumberMap::default();
    let mut armed: NumberMap<TimerAddr, (u64, Source)> = NumberMap::default();
    let mut threads: NumberMap<TimerAddr, u32> = NumberMap::default();
    let mut found: Vec<Expiries> = Vec::new();
    // Cancels are ignored, because most kernels record one just before each expiry.
    let mut gaps = trace.gaps_in_order();
    for (place, record) in trace.records.iter().enumerate() {
        if !gaps(place).is_empty() {
            armed.clear();
            threads.clear();
        }
        match record.event {
            Event::HrtimerStart { timer, soft_expires, function, .. } => {
                let is_sleep = Some(function) == sleep && record.pid != 0;
                let source = match is_sleep && record.context.in_hard_irq() != Some(true) {
                    true => Source::Thread(record.pid),
                    false => Source::Timer(timer, function),
                };
                armed.insert(timer, (soft_expires.0, source));
                if record.pid != 0 && record.context == Context::Task {
                    threads.insert(timer, record.pid);
                }
            }
            Event::HrtimerExpireEntry { timer, function, .. } => {
                let Some((deadline, source)) = armed.remove(&timer) else { continue };
                let at = *places.entry(source).or_insert_with(|| {
                    found.push(Expiries { function, deadlines: Vec::new(), armed_by: None });
                    found.len() - 1
                });
                found[at].deadlines.push(deadline);
                found[at].armed_by = threads.get(&timer).copied().or(found[at].armed_by);
            }
            _ => {}
        }
    }
    found
}

/// Something that expires repeatedly: a timer, by its address, or a thread, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Source {
    Timer(TimerAddr, NameId),
    Thread(u32),
}

fn frequencies(values: impl Iterator<Item = u64>) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

/// Returns the period of a timer with these deadlines, if it is periodic.
fn period(deadlines: &[u64]) -> Option<u64> {
    const EXPIRIES_MIN: usize = 4;
    const MULTIPLES_PERCENT: usize = 90;
    if deadlines.len() < EXPIRIES_MIN {
        return None;
    }
    let distances = deadlines.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let frequencies = frequencies(distances.clone()).into_iter();
    // Take the smallest of equally frequent distances: a larger one is perhaps a multiple of it.
    let (period, _) = frequencies.max_by_key(|&(apart, count)| (count, Reverse(apart)))?;
    if period == 0 {
        return None;
    }
    let multiples = distances.filter(|apart| apart % period == 0 && *apart > 0).count();
    (multiples * 100 >= (deadlines.len() - 1) * MULTIPLES_PERCENT).then_some(period)
}

impl Overlap {
    /// Compares the recorded phases of timers of one period with phases that are spread.
    fn of(function: &str, period: u64, timers: &[Vec<u64>]) -> Overlap {
        let within = period / 100;
        let mut all: Vec<(u64, usize)> = Vec::new();
        for (timer, deadlines) in timers.iter().enumerate() {
            all.extend(deadlines.iter().map(|&deadline| (deadline, timer)));
        }
        all.sort_unstable();
        // Take the most frequent phase: a timer that was restarted can have had several.
        let phase = |deadlines: &Vec<u64>| {
            let phases = frequencies(deadlines.iter().map(|deadline| deadline % period));
            phases.into_iter().max_by_key(|&(_, count)| count).map(|(phase, _)| phase)
        };
        let recorded = timers.iter().filter_map(phase).collect();
        let mut phases = Phases::new();
        let spread = timers.iter().filter_map(|_| {
            // No phase is given back to `phases`, because each timer keeps its own.
            phases.take(Ns(period), Phase::Spread).ok().map(|slot| slot.phase().0)
        });
        Overlap {
            function: function.to_string(),
            period_ns: period,
            expirations: all.len() as u64,
            within_ns: within,
            together: together(&all, within),
            spread: PhaseSet::of(spread.collect(), period, within),
            recorded: PhaseSet::of(recorded, period, within),
            armed_by: BTreeSet::new(),
        }
    }
}

/// Returns how many expiries have an expiry of another timer at most `within` away. `expiries` are
/// pairs of time and timer, sorted.
fn together(expiries: &[(u64, usize)], within: u64) -> u64 {
    let is_close = |at: usize| {
        let (time, timer) = expiries[at];
        let before = expiries[..at].iter().rev().take_while(|other| time - other.0 <= within);
        let after = expiries[at + 1..].iter().take_while(|other| other.0 - time <= within);
        before.chain(after).any(|other| other.1 != timer)
    };
    (0..expiries.len()).filter(|&at| is_close(at)).count() as u64
}

impl PhaseSet {
    /// Measures the gaps between phases. `within` is the distance that counts as together.
    fn of(phases: Vec<u64>, period: u64, within: u64) -> PhaseSet {
        let mut sorted = phases.clone();
        sorted.sort_unstable();
        let next = |at: usize| match sorted.get(at + 1) {
            Some(&next) => next,
            None => sorted[0] + period,
        };
        let gaps: Vec<u64> = (0..sorted.len()).map(|at| next(at) - sorted[at]).collect();
        let is_close = |&at: &usize| {
            let before = if at == 0 { gaps.len() - 1 } else { at - 1 };
            gaps[at].min(gaps[before]) <= within
        };
        PhaseSet {
            gap_min_ns: gaps.iter().copied().min().unwrap_or(0),
            gap_max_ns: gaps.iter().copied().max().unwrap_or(0),
            together_timers: (0..gaps.len()).filter(is_close).count(),
            phases_ns: phases,
        }
    }

    /// Draws the period as a line of characters. Each character stands for a part of the period,
    /// and shows the number of timers whose phase is in that part.
    pub fn strip(&self, period: u64, width: usize) -> String {
        let width = width.max(1);
        let mut counts = vec![0u32; width];
        for &phase in &self.phases_ns {
            let column = (u128::from(phase) * width as u128 / u128::from(period.max(1))) as usize;
            counts[column.min(width - 1)] += 1;
        }
        let mark = |&count: &u32| match count {
            0 => '.',
            1..=9 => char::from_digit(count, 10).unwrap_or('+'),
            _ => '+',
        };
        counts.iter().map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_distinguished_from_chance() {
        assert_eq!(period(&[5, 15, 25, 35]), Some(10));
        assert_eq!(period(&[5, 15, 25]), None, "too few expiries");
        let skips: Vec<u64> = (0..30).filter(|n| n % 7 != 3).map(|n| 5 + 10 * n).collect();
        assert_eq!(period(&skips), Some(10), "whole periods may be missing");
        assert_eq!(period(&[0, 10, 20, 33, 47, 61, 70]), None);
        assert_eq!(period(&[7, 7, 7, 7, 7]), None, "no time passes");
        // Restarted once, with another phase.
        let moved: Vec<u64> = (0..20).map(|n| 10 * n).chain((20..40).map(|n| 10 * n + 3)).collect();
        assert_eq!(period(&moved), Some(10));
        let timers = [moved, (0..40).map(|n| 10 * n).collect()];
        assert_eq!(Overlap::of("f", 10, &timers).recorded.phases_ns, [3, 0]);
    }

    #[test]
    fn expiries_of_other_timers_are_together() {
        let expiries = [(0, 0), (3, 0), (100, 1), (105, 0), (111, 1), (200, 0), (300, 2)];
        assert_eq!(together(&expiries, 5), 2, "a timer is not together with itself");
        assert_eq!(together(&expiries, 6), 3);
        assert_eq!(together(&expiries, 0), 0);
    }

    #[test]
    fn phases_as_a_strip() {
        let set = PhaseSet::of(vec![0, 1, 50, 99], 100, 1);
        assert_eq!((set.gap_min_ns, set.gap_max_ns, set.together_timers), (1, 49, 3));
        assert_eq!(set.strip(100, 10), "2....1...1");
        let crowd = PhaseSet::of(vec![25; 12], 100, 1);
        assert_eq!((crowd.gap_min_ns, crowd.gap_max_ns, crowd.together_timers), (0, 100, 12));
        assert_eq!(crowd.strip(100, 4), ".+..");
    }
}
