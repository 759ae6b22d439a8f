//! Whether a trace can have happened like that.
//!
//! A file that was damaged after it was recorded often still reads well: lines are there twice, are
//! missing, or have another time. What the kernel can have printed is held against it here.

use super::Record;
use super::event::{Event, EventKind, TimerAddr};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tickless_core::time::CpuId;

/// Whether so many of so many are more than chance and clocks that differ explain.
pub(super) fn is_many(count: u64, of: u64) -> bool {
    const PERCENT: u64 = 1;
    const FEW: u64 = 8;
    count >= FEW && count * 100 > of * PERCENT
}

/// Events that equal one before them of the same CPU and time, with nothing in between after which
/// they could come again: the first one's line, and how many. Text has microseconds, in which a
/// program may arm and cancel one timer twice.
pub(super) fn repeated(records: &[Record]) -> Option<(u32, u64)> {
    let is_repeated = |record: &Record, before: &[Record]| {
        let here = before.iter().rev().filter(|other| other.cpu == record.cpu);
        let timer = timer_of(&record.event);
        let mut related = here.filter(|other| timer.is_none() || timer_of(&other.event) == timer);
        related.next().is_some_and(|last| last.event == record.event)
    };
    let mut count = 0;
    let mut first = 0;
    let mut begin = 0;
    for (at, record) in records.iter().enumerate() {
        if record.time != records[begin].time {
            begin = at;
        }
        // Where very many have one time, the next ones tell as much as all of them.
        const NEAR: usize = 64;
        let near = &records[begin.max(at.saturating_sub(NEAR))..at];
        if is_repeated(record, near) {
            count += 1;
            first = if count == 1 { record.line } else { first };
        }
    }
    is_many(count, records.len() as u64).then_some((first, count))
}

fn timer_of(event: &Event) -> Option<TimerAddr> {
    match *event {
        Event::TimerInit { timer }
        | Event::TimerStart { timer, .. }
        | Event::TimerCancel { timer }
        | Event::TimerExpireEntry { timer, .. }
        | Event::TimerExpireExit { timer }
        | Event::HrtimerSetup { timer, .. }
        | Event::HrtimerStart { timer, .. }
        | Event::HrtimerCancel { timer }
        | Event::HrtimerExpireEntry { timer, .. }
        | Event::HrtimerExpireExit { timer } => Some(timer),
        _ => None,
    }
}

/// Whether all events have one time, and there are too many for that.
pub(super) fn has_no_time(records: &[Record]) -> bool {
    const FEW: usize = 100;
    records.len() >= FEW
        && records.first().map(|record| record.time) == records.last().map(|record| record.time)
}

/// As long as this nothing can have happened on a machine that has a timer pending.
const LONG_NS: u64 = 3_600 * 1_000_000_000;

/// The events without those few that are hours away from all others; none if all are near.
/// `records` are sorted by time.
pub(super) fn without_far_times(records: &[Record]) -> Option<Range<usize>> {
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

/// The longest time without an event, if it is hours: the line behind it, and how many seconds.
pub(super) fn jump(records: &[Record]) -> Option<(u32, u64)> {
    let gap = |pair: &[Record]| (pair[1].time.since(pair[0].time).0, pair[1].line);
    let (ns, line) = records.windows(2).map(gap).max()?;
    (ns > LONG_NS).then_some((line, ns / 1_000_000_000))
}

/// CPUs with events that a machine of `known` CPUs cannot have. Numbers may have holes, so one
/// beyond `known` is right as long as there are no more different ones than that.
pub(super) fn unknown_cpus(records: &[Record], known: u16) -> HashSet<CpuId> {
    const PER_MILLE: usize = 1;
    let mut events: HashMap<CpuId, usize> = HashMap::new();
    for record in records {
        *events.entry(record.cpu).or_default() += 1;
        if let Some(target) = record.event.target() {
            events.entry(target).or_default();
        }
    }
    let has_too_many = events.len() > usize::from(known);
    let is_rare = |count: usize| count * 1_000 <= records.len() * PER_MILLE;
    let beyond = events.into_iter().filter(|(cpu, _)| cpu.0 >= known);
    beyond.filter(|&(_, count)| has_too_many || is_rare(count)).map(|(cpu, _)| cpu).collect()
}

/// Events that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Halves {
    /// Pairs that are there.
    pub(super) whole: u64,
    /// Pairs of which one half is missing.
    pub(super) broken: u64,
    /// The first line that tells of a missing half.
    pub(super) first: Option<u32>,
}

/// Which of two halves an event is, and of what.
enum Half {
    Entry(EventKind, TimerAddr),
    Exit(EventKind, TimerAddr),
}

/// Matches callbacks' and interrupts' beginnings with their ends, CPU by CPU. What began before
/// the trace or ends after it counts as nothing.
pub(super) fn halves(records: &[Record]) -> Halves {
    const PAIRS: [(EventKind, EventKind); 3] = [
        (EventKind::TimerExpireEntry, EventKind::TimerExpireExit),
        (EventKind::HrtimerExpireEntry, EventKind::HrtimerExpireExit),
        (EventKind::LocalTimerEntry, EventKind::LocalTimerExit),
    ];
    let kinds: HashSet<EventKind> = records.iter().map(|record| record.event.kind()).collect();
    // A recording may have been asked for one half alone.
    let is_recorded =
        |kind: EventKind| PAIRS.iter().any(|&(entry, exit)| entry == kind && kinds.contains(&exit));
    let mut open: HashMap<CpuId, Vec<(EventKind, TimerAddr)>> = HashMap::new();
    let mut began: HashSet<(CpuId, EventKind)> = HashSet::new();
    let mut halves = Halves::default();
    for record in records {
        let is_broken = match half(&record.event) {
            Some(Half::Entry(kind, timer)) if is_recorded(kind) => {
                let open = open.entry(record.cpu).or_default();
                began.insert((record.cpu, kind));
                let left = open.iter().position(|&(other, of)| other == kind && of == timer);
                let is_left = left.map(|left| open.truncate(left)).is_some();
                open.push((kind, timer));
                is_left
            }
            Some(Half::Exit(kind, timer)) => {
                let open = open.entry(record.cpu).or_default();
                match open.iter().rposition(|&(other, of)| other == kind && of == timer) {
                    Some(at) => {
                        // What is open above it never ended.
                        let unended = open.len() - at - 1;
                        open.truncate(at);
                        halves.whole += 1;
                        halves.broken += unended as u64;
                        unended > 0
                    }
                    None => began.contains(&(record.cpu, kind)),
                }
            }
            _ => false,
        };
        if is_broken {
            halves.broken += 1;
            halves.first.get_or_insert(record.line);
        }
    }
    halves
}

fn half(event: &Event) -> Option<Half> {
    const INTERRUPT: TimerAddr = TimerAddr(0);
    Some(match *event {
        Event::TimerExpireEntry { timer, .. } => Half::Entry(EventKind::TimerExpireEntry, timer),
        Event::TimerExpireExit { timer } => Half::Exit(EventKind::TimerExpireEntry, timer),
        Event::HrtimerExpireEntry { timer, .. } => {
            Half::Entry(EventKind::HrtimerExpireEntry, timer)
        }
        Event::HrtimerExpireExit { timer } => Half::Exit(EventKind::HrtimerExpireEntry, timer),
        Event::LocalTimerEntry => Half::Entry(EventKind::LocalTimerEntry, INTERRUPT),
        Event::LocalTimerExit => Half::Exit(EventKind::LocalTimerEntry, INTERRUPT),
        _ => return None,
    })
}
