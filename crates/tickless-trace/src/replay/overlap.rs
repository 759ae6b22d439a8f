//! Which periodic timers of a trace expire together, and what spreading them would change.
//!
//! A high-resolution timer is taken to be periodic if most of the distances between its expiries
//! are the same, and nearly all are whole multiples of that; distances are those of soft
//! deadlines, which are exact, not of when the kernel got round to them. Timers with one function
//! and one period are set beside each other, with the phases that they have and with those that
//! [`Phase::Spread`] would have given them, in the order in which they appear.

use crate::read::{Event, EventKind, NameId, TimerAddr, Trace};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use tickless_core::phase::{Phase, Phases};
use tickless_core::time::Ns;

/// Timers with one function and one period.
#[derive(Debug, Serialize)]
pub struct Overlap {
    /// The kernel's name for the function.
    pub function: String,
    /// Their period.
    pub period_ns: u64,
    /// How often they expired, all of them.
    pub expirations: u64,
    /// Expiries as near to each other as this count as together: a hundredth of the period.
    pub within_ns: u64,
    /// Expiries that had another timer's expiry so near.
    pub together: u64,
    /// As recorded.
    pub recorded: PhaseSet,
    /// As spread would place them.
    pub spread: PhaseSet,
}

/// Where timers of one period sit in it.
#[derive(Debug, Serialize)]
pub struct PhaseSet {
    /// Behind the multiples of the period on the timers' clock, in the order of appearance.
    pub phases_ns: Vec<u64>,
    /// The shortest distance between two neighbours, around the period.
    pub gap_min_ns: u64,
    /// The longest.
    pub gap_max_ns: u64,
    /// How many of the timers have another one so near that they expire together.
    pub together_timers: usize,
}

/// A timer needs so many expiries to be taken for periodic.
const EXPIRIES_MIN: usize = 4;

/// So many of a hundred distances between expiries must be whole periods.
const WHOLE_PERCENT: usize = 90;

/// A timer, or a thread that sleeps, which expires at one interval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Periodic {
    /// The kernel's name for the function.
    pub function: String,
    /// The thread that sleeps; null for timers of the kernel and of processes.
    pub thread: Option<String>,
    /// The thread's number.
    pub pid: Option<u32>,
    /// Its period.
    pub period_ns: u64,
    /// How often it expired.
    pub expirations: u64,
    /// Under how many addresses the trace has its timer.
    pub addresses: usize,
}

/// What expires: a timer by its address; or a thread, whose sleeps may each have a timer on its
/// stack at another address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Source {
    Timer(TimerAddr, NameId),
    Thread(u32, NameId),
}

/// A source's deadlines, in the order in which they expired.
struct Deadlines {
    source: Source,
    function: NameId,
    deadlines: Vec<u64>,
    addresses: HashSet<TimerAddr>,
}

/// Finds timers that expire together. O(n log n) in the number of expiries. Those that expired
/// most come first.
pub(super) fn find(trace: &Trace) -> Vec<Overlap> {
    let mut groups: BTreeMap<(NameId, u64), Vec<Vec<u64>>> = BTreeMap::new();
    for Deadlines { function, deadlines, .. } in deadlines(trace) {
        if let Some(period) = period(&deadlines) {
            groups.entry((function, period)).or_default().push(deadlines);
        }
    }
    let overlap = |((function, period), timers): ((NameId, u64), Vec<Vec<u64>>)| {
        (timers.len() > 1).then(|| Overlap::of(trace.names.name(function), period, &timers))
    };
    let mut found: Vec<Overlap> = groups.into_iter().filter_map(overlap).collect();
    found.sort_by_key(|overlap| Reverse(overlap.expirations));
    found
}

/// Finds what expires at one interval, alone or not. O(n log n) in the number of expiries.
pub(super) fn periodic(trace: &Trace) -> Vec<Periodic> {
    const SHOWN_MAX: usize = 50;
    let periodic = |found: Deadlines| {
        let pid = match found.source {
            Source::Thread(pid, _) => Some(pid),
            Source::Timer(..) => None,
        };
        Some(Periodic {
            function: trace.names.name(found.function).to_string(),
            thread: pid.and_then(|pid| trace.tasks.get(&pid)).map(|name| name.to_string()),
            pid,
            period_ns: period(&found.deadlines)?,
            expirations: found.deadlines.len() as u64,
            addresses: found.addresses.len(),
        })
    };
    let mut found: Vec<Periodic> = deadlines(trace).into_iter().filter_map(periodic).collect();
    found.sort_by_key(|periodic| Reverse(periodic.expirations));
    found.truncate(SHOWN_MAX);
    found
}

/// What the kernel calls when a sleep of a thread is over.
const WAKES_A_SLEEPER: &str = "hrtimer_wakeup";

/// The deadlines that each high-resolution timer expired for, in the order of its first start.
fn deadlines(trace: &Trace) -> Vec<Deadlines> {
    let sleep = trace.names.find(WAKES_A_SLEEPER);
    let mut place: HashMap<Source, usize> = HashMap::new();
    let mut armed: HashMap<TimerAddr, (u64, Source)> = HashMap::new();
    let mut found: Vec<Deadlines> = Vec::new();
    for record in trace.records.of_kinds(&[EventKind::HrtimerStart, EventKind::HrtimerExpireEntry])
    {
        match record.event {
            Event::HrtimerStart { timer, soft_expires, function, .. } => {
                let is_sleep = Some(function) == sleep && record.pid != 0;
                let source = match is_sleep && record.context.in_hard_irq() != Some(true) {
                    true => Source::Thread(record.pid, function),
                    false => Source::Timer(timer, function),
                };
                armed.insert(timer, (soft_expires.0, source));
            }
            Event::HrtimerExpireEntry { timer, function, .. } => {
                let Some((deadline, source)) = armed.remove(&timer) else { continue };
                let at = *place.entry(source).or_insert_with(|| {
                    let (deadlines, addresses) = (Vec::new(), HashSet::new());
                    found.push(Deadlines { source, function, deadlines, addresses });
                    found.len() - 1
                });
                found[at].deadlines.push(deadline);
                found[at].addresses.insert(timer);
            }
            // Just before an expiry there is a cancel too, on most kernels: what it was armed for
            // stands.
            _ => {}
        }
    }
    found
}

/// The period of a timer with these deadlines, if it has one.
fn period(deadlines: &[u64]) -> Option<u64> {
    if deadlines.len() < EXPIRIES_MIN {
        return None;
    }
    let mut apart: Vec<u64> =
        deadlines.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    apart.iter().for_each(|&apart| *times.entry(apart).or_default() += 1);
    // The shorter of equally frequent ones: the longer may be two of it.
    let commonest = times.iter().max_by_key(|&(&apart, &count)| (count, u64::MAX - apart));
    let (&period, _) = commonest.filter(|&(&apart, _)| apart > 0)?;
    apart.retain(|apart| apart % period == 0 && *apart > 0);
    (apart.len() * 100 >= (deadlines.len() - 1) * WHOLE_PERCENT).then_some(period)
}

impl Overlap {
    fn of(function: &str, period: u64, timers: &[Vec<u64>]) -> Overlap {
        let within = period / 100;
        let mut all: Vec<(u64, usize)> = Vec::new();
        for (timer, deadlines) in timers.iter().enumerate() {
            all.extend(deadlines.iter().map(|&deadline| (deadline, timer)));
        }
        all.sort_unstable();
        let recorded = timers.iter().filter_map(|deadlines| phase(deadlines, period)).collect();
        let mut phases = Phases::new();
        let spread = timers.iter().filter_map(|_| {
            // Seats stay taken: the registry goes with this function.
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
        }
    }
}

/// Where a timer mostly was in its period: one that was started anew may have moved.
fn phase(deadlines: &[u64], period: u64) -> Option<u64> {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    deadlines.iter().for_each(|deadline| *times.entry(deadline % period).or_default() += 1);
    times.into_iter().max_by_key(|&(_, count)| count).map(|(phase, _)| phase)
}

/// Of these expiries, sorted, how many have one of another timer so near?
fn together(expiries: &[(u64, usize)], within: u64) -> u64 {
    let is_near = |at: usize| {
        let (time, timer) = expiries[at];
        let is_other = |&&(_, other): &&(u64, usize)| other != timer;
        let before = expiries[..at].iter().rev().take_while(|other| time - other.0 <= within);
        let behind = expiries[at + 1..].iter().take_while(|other| other.0 - time <= within);
        before.chain(behind).find(is_other).is_some()
    };
    (0..expiries.len()).filter(|&at| is_near(at)).count() as u64
}

impl PhaseSet {
    fn of(phases: Vec<u64>, period: u64, within: u64) -> PhaseSet {
        let mut sorted = phases.clone();
        sorted.sort_unstable();
        let next = |at: usize| match sorted.get(at + 1) {
            Some(&next) => next,
            None => sorted[0] + period,
        };
        let gaps: Vec<u64> = (0..sorted.len()).map(|at| next(at) - sorted[at]).collect();
        let is_near = |&at: &usize| {
            let before = if at == 0 { gaps.len() - 1 } else { at - 1 };
            gaps[at].min(gaps[before]) <= within
        };
        PhaseSet {
            gap_min_ns: gaps.iter().copied().min().unwrap_or(0),
            gap_max_ns: gaps.iter().copied().max().unwrap_or(0),
            together_timers: (0..gaps.len()).filter(is_near).count(),
            phases_ns: phases,
        }
    }

    /// The period as a strip of characters: how many timers sit where.
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
    fn periods_are_told_from_chance() {
        assert_eq!(period(&[5, 15, 25, 35]), Some(10));
        assert_eq!(period(&[5, 15, 25]), None, "too few to tell");
        let skips: Vec<u64> = (0..30).filter(|n| n % 7 != 3).map(|n| 5 + 10 * n).collect();
        assert_eq!(period(&skips), Some(10), "whole periods may be missing");
        assert_eq!(period(&[0, 10, 20, 33, 47, 61, 70]), None);
        assert_eq!(period(&[7, 7, 7, 7, 7]), None, "no time passes");
        // Once stopped and started anew, elsewhere in its period.
        let moved: Vec<u64> = (0..20).map(|n| 10 * n).chain((20..40).map(|n| 10 * n + 3)).collect();
        assert_eq!((period(&moved), phase(&moved, 10)), (Some(10), Some(3)));
    }

    #[test]
    fn expiries_of_others_are_together() {
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
