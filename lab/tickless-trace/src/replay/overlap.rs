//! Which periodic timers of a trace expire together, and what spreading them would change.
//!
//! A high-resolution timer counts as periodic if most distances between its expiries are equal, and
//! nearly all are multiples of that distance. Distances are those of soft deadlines, which are
//! exact, not of the times at which the kernel expired them. Timers with the same callback function
//! and the same period form a group. Their recorded phases (offsets from multiples of the period)
//! are compared with those that [`Phase::Spread`] would have given them, one timer after the other.

use crate::list::List;
use crate::read::{Context, Event, NameId, SLEEPER_FUNCTION, TimerAddr, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use tickless_core::phase::{Phase, Phases};
use tickless_core::time::Ns;

/// How many deadlines of a timer show its period and its phase, and after how many the memory of
/// others is given back.
const OFTEN: usize = 1 << 16;

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
    let (timers, mut deadlines) = expiries(trace);
    for timer in timers {
        let of_timer = timer.first..timer.first + timer.count;
        if let Some(period) = period(&deadlines[of_timer.clone()]) {
            if !deadlines[of_timer.clone()].is_sorted() {
                deadlines[of_timer].sort_unstable();
            }
            groups.entry((timer.function, period)).or_default().push(timer);
        }
        deadlines.release(0..deadlines.len());
    }
    let mut found = Vec::new();
    for ((function, period), timers) in groups {
        if timers.len() > 1 {
            let armed_by = timers.iter().filter_map(|timer| timer.armed_by).collect();
            let of = |it: &Expiries| &deadlines[it.first..it.first + it.count];
            let of_each: Vec<&[u64]> = timers.iter().map(of).collect();
            let overlap = Overlap::of(trace.names.name(function), period, &of_each);
            found.push(Overlap { armed_by, ..overlap });
            deadlines.release(0..deadlines.len());
        }
    }
    found.sort_by_key(|overlap| Reverse(overlap.expirations));
    found
}

struct Expiries {
    function: NameId,
    /// How many expiries it has, and where the first of their deadlines is in the list of all.
    count: usize,
    first: usize,
    /// The last thread that armed it outside of interrupts; `None` if none did.
    armed_by: Option<u32>,
}

/// Returns the high-resolution timers in the order in which they first expired, and the deadlines
/// at which they expired: those of the first timer come first, in their order. The sleeps of a
/// thread count as one timer, since each can have its timer at a different place on the thread's
/// stack.
fn expiries(trace: &Trace) -> (Vec<Expiries>, List<u64>) {
    let sleep = trace.names.find(SLEEPER_FUNCTION);
    let mut places: FxHashMap<Source, usize> = FxHashMap::default();
    let mut armed: FxHashMap<TimerAddr, (u64, Source)> = FxHashMap::default();
    let mut threads: FxHashMap<TimerAddr, u32> = FxHashMap::default();
    let mut found: Vec<Expiries> = Vec::new();
    let mut all: List<(u32, u64)> = List::default();
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
                    found.push(Expiries { function, count: 0, first: 0, armed_by: None });
                    found.len() - 1
                });
                all.push((at as u32, deadline));
                found[at].count += 1;
                found[at].armed_by = threads.get(&timer).copied().or(found[at].armed_by);
            }
            _ => {}
        }
    }
    let mut first = 0;
    for timer in &mut found {
        timer.first = first;
        first += timer.count;
    }
    let mut next: Vec<usize> = found.iter().map(|timer| timer.first).collect();
    let mut deadlines: List<u64> = all.iter().map(|_| 0).collect();
    for (place, &(timer, deadline)) in all.iter().enumerate() {
        let next = &mut next[timer as usize];
        deadlines[*next] = deadline;
        *next += 1;
        if place.is_multiple_of(OFTEN) {
            deadlines.release(0..deadlines.len());
        }
    }
    (found, deadlines)
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
    let frequencies = frequencies(distances.clone().take(OFTEN)).into_iter();
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
    fn of(function: &str, period: u64, timers: &[&[u64]]) -> Overlap {
        let within = period / 100;
        // Take the most frequent phase: a timer that was restarted can have had several.
        let phase = |deadlines: &&[u64]| {
            let some = deadlines.iter().take(OFTEN);
            let phases = frequencies(some.map(|deadline| deadline % period));
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
            expirations: timers.iter().map(|deadlines| deadlines.len() as u64).sum(),
            within_ns: within,
            together: together(merged(timers), within),
            spread: PhaseSet::of(spread.collect(), period, within),
            recorded: PhaseSet::of(recorded, period, within),
            armed_by: BTreeSet::new(),
        }
    }
}

/// Returns the deadlines of all timers in order, each with its timer. Those of each are in order.
fn merged(timers: &[&[u64]]) -> impl Iterator<Item = (u64, usize)> {
    let mut rest = timers.to_vec();
    let first = |(timer, of): (usize, &&[u64])| Some(Reverse((*of.first()?, timer)));
    let mut order: BinaryHeap<_> = timers.iter().enumerate().filter_map(first).collect();
    std::iter::from_fn(move || {
        let Reverse((deadline, timer)) = order.pop()?;
        rest[timer] = &rest[timer][1..];
        order.extend(rest[timer].first().map(|next| Reverse((*next, timer))));
        Some((deadline, timer))
    })
}

/// Returns how many expiries have an expiry of another timer at most `within` away. `expiries` are
/// pairs of time and timer, sorted.
fn together(expiries: impl Iterator<Item = (u64, usize)>, within: u64) -> u64 {
    let mut count = 0;
    // The last expiry, the last one of another timer than that, and those near the last one that
    // have no other near them so far: all are of one timer.
    let [mut last, mut other] = [None::<(u64, usize)>; 2];
    let mut alone: VecDeque<(u64, usize)> = VecDeque::new();
    for (time, timer) in expiries {
        let is_near = |before: &(u64, usize)| before.1 != timer && time - before.0 <= within;
        while alone.pop_front_if(|before| time - before.0 > within).is_some() {}
        if alone.front().is_some_and(is_near) {
            count += alone.len() as u64;
            alone.clear();
        }
        match last.as_ref().is_some_and(is_near) || other.as_ref().is_some_and(is_near) {
            true => count += 1,
            false => alone.push_back((time, timer)),
        }
        if last.is_some_and(|last| last.1 != timer) {
            other = last;
        }
        last = Some((time, timer));
    }
    count
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
    fn expiries_of_other_timers_are_together() {
        let timers = [&[0, 3, 105, 200][..], &[100, 111], &[300]];
        let within = |within| together(merged(&timers), within);
        assert_eq!(within(5), 2, "a timer is not together with itself");
        assert_eq!((within(6), within(0)), (3, 0));
        // Beside the expiry just before, one of the same timer is near another.
        assert_eq!(together(merged(&[&[0, 7], &[4]]), 4), 3);
        assert_eq!(together(merged(&[&[0, 1, 2, 3], &[3, 9]]), 1), 3);
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
