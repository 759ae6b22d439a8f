//! Detects recordings that were damaged after they were recorded.
//!
//! Such a file can often still be read, but it has lines twice, lacks lines, or has lines with a
//! wrong time. These checks find what no kernel can have recorded.

use super::Record;
use super::event::{Event, EventKind, Family, TimerAddr};
use crate::list::List;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::ops::Range;
use tickless_core::time::CpuId;

/// Returns whether `count` suspicious events among `of` events are too many to be explained by
/// chance, or by clocks that differ between CPUs.
pub(super) fn is_many(count: u64, of: u64) -> bool {
    const PERCENT: u64 = 1;
    const FEW: u64 = 8;
    count >= FEW && count * 100 > of * PERCENT
}

/// Finds repeated events: an event repeats if it equals the last event of its timer (or, without a
/// timer, the last event) at the same time on the same CPU. Returns the line of the first one and
/// their number; `None` if there are few. Equal events with a different one in between can be
/// right: times in text are cut to microseconds, and within one, a program can arm and cancel a
/// timer twice.
pub(super) fn repeated(records: &List<Record>) -> Option<(u32, u64)> {
    let (mut count, mut first) = (0, 0);
    let (mut begin, mut time) = (0, None);
    for (at, record) in records.iter().enumerate() {
        if time.replace(record.time) != Some(record.time) {
            begin = at;
        }
        // Compare with at most this many events of the same time. Otherwise a file in which all
        // events have the same time could take quadratic time.
        const NEAR: usize = 64;
        let near = records[begin.max(at.saturating_sub(NEAR))..at].iter();
        let mut here = near.rev().filter(|other| other.cpu == record.cpu);
        let timer = record.event.timer();
        let related = here.find(|other| timer.is_none() || other.event.timer() == timer);
        if related.is_some_and(|last| last.event == record.event) {
            count += 1;
            first = if count == 1 { record.line } else { first };
        }
    }
    is_many(count, records.len() as u64).then_some((first, count))
}

/// Returns whether all events have the same time, though there are too many for that to be right.
pub(super) fn has_no_time(records: &List<Record>) -> bool {
    const FEW: usize = 100;
    records.len() >= FEW
        && records.first().map(|record| record.time) == records.last().map(|record| record.time)
}

/// One hour. A machine with a pending timer has an event more often than that.
const LONG_NS: u64 = 3_600 * 1_000_000_000;

/// Returns the range of all events but the few, at the beginning or the end, that are hours away
/// from all others; `None` if there are none of these. `records` must be sorted by time.
pub(super) fn without_far_times(records: &List<Record>) -> Option<Range<usize>> {
    const PERCENT: usize = 1;
    let few = records.len() * PERCENT / 100;
    if few == 0 {
        return None;
    }
    let is_gap = |at: &usize| records[*at].time.since(records[at - 1].time).0 > LONG_NS;
    let start = (1..=few).rev().find(is_gap).unwrap_or(0);
    let end = (records.len() - few..records.len()).find(is_gap).unwrap_or(records.len());
    (start > 0 || end < records.len()).then_some(start..end)
}

/// Returns the longest gap between two events, if it is longer than an hour: the line after the
/// gap, and its length in seconds.
pub(super) fn jump(records: &List<Record>) -> Option<(u32, u64)> {
    let pairs = records.iter().zip(records.iter().skip(1));
    let (ns, line) = pairs.map(|(one, next)| (next.time.since(one.time).0, next.line)).max()?;
    (ns > LONG_NS).then_some((line, ns / 1_000_000_000))
}

/// Returns the CPUs in the events that a machine of `known` CPUs cannot have. CPU numbers can have
/// gaps, so a CPU above `known` can be right: if the events name no more than `known` CPUs in all,
/// and more than a thousandth of the events are on that CPU.
pub(super) fn unknown_cpus(records: &List<Record>, known: u16) -> HashSet<CpuId> {
    const PER_MILLE: usize = 1;
    // For each CPU, the number of its events; `None` if no event names the CPU.
    let mut events: Vec<Option<usize>> = Vec::new();
    let mut see = |cpu: CpuId, count: usize| {
        events.resize(events.len().max(cpu.index() + 1), None);
        *events[cpu.index()].get_or_insert(0) += count;
    };
    for record in records.iter() {
        see(record.cpu, 1);
        if let Some(target) = record.event.target() {
            see(target, 0);
        }
    }
    let has_too_many = events.iter().flatten().count() > usize::from(known);
    let is_unknown = |count: usize| has_too_many || count * 1_000 <= records.len() * PER_MILLE;
    let beyond = (0..).zip(events).skip(known.into());
    beyond.filter(|(_, count)| count.is_some_and(is_unknown)).map(|(cpu, _)| CpuId(cpu)).collect()
}

/// Counts the cancels of wheel timers, and those of timers that were not armed since their last
/// cancel. A timer that was pending when the recording began counts as armed once. Kernels that
/// record nothing of an idle thread hide armings of high-resolution timers, so these do not count.
pub(super) fn impossible_cancels(records: &List<Record>) -> (u64, u64) {
    let mut is_armed: FxHashMap<TimerAddr, bool> = FxHashMap::default();
    let (mut cancels, mut impossible) = (0, 0);
    for record in records.iter() {
        match record.event {
            Event::TimerStart { timer, .. } => drop(is_armed.insert(timer, true)),
            Event::TimerCancel { timer } => {
                cancels += 1;
                impossible += u64::from(is_armed.insert(timer, false) == Some(false));
            }
            _ => {}
        }
    }
    (cancels, impossible)
}

/// How many pairs of events (entry and exit of a callback or an interrupt) are in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Pairs {
    pub(super) whole: u64,
    /// Pairs of which one half is missing.
    pub(super) broken: u64,
    /// The first line that shows that one event of a pair is missing.
    pub(super) first: Option<u32>,
}

/// Matches the entries of callbacks and interrupts with their exits, CPU by CPU. A pair that began
/// before the trace or ends after it does not count.
pub(super) fn pairs(records: &List<Record>, counts: &[usize]) -> Pairs {
    const PAIRS: [[EventKind; 2]; 3] = [
        [EventKind::TimerExpireEntry, EventKind::TimerExpireExit],
        [EventKind::HrtimerExpireEntry, EventKind::HrtimerExpireExit],
        [EventKind::LocalTimerEntry, EventKind::LocalTimerExit],
    ];
    let has_exits = PAIRS.map(|[_, exit]| counts[exit as usize] > 0);
    // For each CPU, the entries whose exits have not come yet, the innermost last: (index in
    // `PAIRS`, timer). And whether an entry of each pair has come.
    type Entry = (usize, Option<(Family, TimerAddr)>);
    let mut cpus: Vec<(Vec<Entry>, [bool; PAIRS.len()])> = Vec::new();
    let mut pairs = Pairs::default();
    for record in records.iter() {
        let kind = record.event.kind();
        let Some(pair) = PAIRS.iter().position(|pair| pair.contains(&kind)) else { continue };
        if !has_exits[pair] {
            // The recording was restricted to entries.
            continue;
        }
        let this = (pair, record.event.timer());
        cpus.resize(cpus.len().max(record.cpu.index() + 1), Default::default());
        let (open, began) = &mut cpus[record.cpu.index()];
        let place = open.iter().rposition(|other| *other == this);
        let broken = if kind == PAIRS[pair][0] {
            began[pair] = true;
            // If an equal entry is still open, its exit is missing, and so are the exits of all
            // entries after it.
            let is_left = place.map(|place| open.truncate(place)).is_some();
            open.push(this);
            u64::from(is_left)
        } else if let Some(place) = place {
            // Entries above this one have no exit.
            let unended = open.len() - place - 1;
            open.truncate(place);
            pairs.whole += 1;
            if unended > 0 { unended as u64 + 1 } else { 0 }
        } else {
            u64::from(began[pair])
        };
        if broken > 0 {
            pairs.broken += broken;
            pairs.first.get_or_insert(record.line);
        }
    }
    pairs
}
