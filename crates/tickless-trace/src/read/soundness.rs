//! Whether a trace can have happened like that.
//!
//! A file that was damaged after it was recorded often still reads well: lines are there twice, are
//! missing, or have another time. What the kernel can have printed is held against it here.

use super::event::{Event, EventKind, TimerAddr};
use super::{Record, RecordIter, Records};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tickless_core::time::{CpuId, Ns};

/// Whether so many of so many are more than chance and clocks that differ explain.
pub(super) fn is_many(count: u64, of: u64) -> bool {
    const PERCENT: u64 = 1;
    const FEW: u64 = 8;
    count >= FEW && count * 100 > of * PERCENT
}

/// Events that equal one before them of the same CPU and time, with nothing in between after which
/// they could come again: the first one's line, and how many. Text has microseconds, in which a
/// program may arm and cancel one timer twice.
pub(super) fn repeated(records: &Records) -> Option<(u32, u64)> {
    let is_repeated = |record: &Record, before: RecordIter<'_>| {
        let here = before.rev().filter(|other| other.cpu == record.cpu);
        let timer = timer_of(&record.event);
        let mut related = here.filter(|other| timer.is_none() || timer_of(&other.event) == timer);
        related.next().is_some_and(|last| last.event == record.event)
    };
    let mut count = 0;
    let mut first = 0;
    let mut begin = 0;
    let mut time = None;
    for (at, record) in records.iter().enumerate() {
        if time.replace(record.time) != Some(record.time) {
            begin = at;
        }
        // Where very many have one time, the next ones tell as much as all of them.
        const NEAR: usize = 64;
        let near = records.range(begin.max(at.saturating_sub(NEAR))..at);
        if is_repeated(&record, near) {
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
pub(super) fn has_no_time(records: &Records) -> bool {
    const FEW: usize = 100;
    records.len() >= FEW
        && records.first().map(|record| record.time) == records.last().map(|record| record.time)
}

/// As long as this nothing can have happened on a machine that has a timer pending.
const LONG_NS: u64 = 3_600 * 1_000_000_000;

/// The events without those few that are hours away from all others; none if all are near.
/// `records` are sorted by time.
pub(super) fn without_far_times(records: &Records) -> Option<Range<usize>> {
    const PERCENT: usize = 1;
    let few = records.len() * PERCENT / 100;
    if few == 0 {
        return None;
    }
    let is_gap = |at: &usize| records.at(*at).time.since(records.at(at - 1).time).0 > LONG_NS;
    let start = (1..=few).rev().find(is_gap).unwrap_or(0);
    let end = (records.len() - few..records.len()).find(is_gap).unwrap_or(records.len());
    (start > 0 || end < records.len()).then_some(start..end)
}

/// The longest time without an event, if it is hours: the line behind it, and how many seconds.
pub(super) fn jump(records: &Records) -> Option<(u32, u64)> {
    let gap = |((one, _), (next, line)): ((Ns, u32), (Ns, u32))| (next.since(one).0, line);
    let (ns, line) = records.times().zip(records.times().skip(1)).map(gap).max()?;
    (ns > LONG_NS).then_some((line, ns / 1_000_000_000))
}

/// CPUs with events that a machine of `known` CPUs cannot have. Numbers may have holes, so one
/// beyond `known` is right as long as there are no more different ones than that.
pub(super) fn unknown_cpus(records: &Records, known: u16) -> HashSet<CpuId> {
    const PER_MILLE: usize = 1;
    // By CPU; none where nothing says that it is there.
    let mut events: Vec<Option<usize>> = Vec::new();
    let mut see = |cpu: CpuId, count: usize| {
        events.resize(events.len().max(cpu.index() + 1), None);
        *events[cpu.index()].get_or_insert(0) += count;
    };
    for record in records {
        see(record.cpu, 1);
        if let Some(target) = record.event.target() {
            see(target, 0);
        }
    }
    let has_too_many = events.iter().flatten().count() > usize::from(known);
    let is_rare = |count: usize| count * 1_000 <= records.len() * PER_MILLE;
    let beyond = (0..).zip(events).skip(known.into());
    let is_unknown = |count: usize| has_too_many || is_rare(count);
    beyond.filter(|(_, count)| count.is_some_and(is_unknown)).map(|(cpu, _)| CpuId(cpu)).collect()
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
pub(super) fn halves(records: &Records) -> Halves {
    const PAIRS: [(EventKind, EventKind); 3] = [
        (EventKind::TimerExpireEntry, EventKind::TimerExpireExit),
        (EventKind::HrtimerExpireEntry, EventKind::HrtimerExpireExit),
        (EventKind::LocalTimerEntry, EventKind::LocalTimerExit),
    ];
    // A recording may have been asked for one half alone.
    let has = |(_, exit): (EventKind, EventKind)| records.kinds().any(|kind| kind == exit);
    let whole: Vec<EventKind> =
        PAIRS.into_iter().filter(|&pair| has(pair)).map(|(entry, _)| entry).collect();
    let mut open: HashMap<CpuId, Vec<(EventKind, TimerAddr)>> = HashMap::new();
    let mut began: HashSet<(CpuId, EventKind)> = HashSet::new();
    let mut halves = Halves::default();
    let both: Vec<EventKind> = PAIRS.into_iter().flat_map(|(entry, exit)| [entry, exit]).collect();
    for record in records.of_kinds(&both) {
        let is_broken = match half(&record.event) {
            Some(Half::Entry(kind, timer)) if whole.contains(&kind) => {
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
