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
use tickless_core::time::{CpuId, Ns};

/// Returns whether `count` suspicious events among `of` events are too many to be explained by
/// chance, or by clocks that differ between CPUs.
pub(super) fn is_many(count: u64, of: u64) -> bool {
    const PERCENT: u64 = 1;
    const FEW: u64 = 8;
    count >= FEW && count * 100 > of * PERCENT
}

/// Counts repeated events: an event repeats if it equals the last event of its timer (or, without a
/// timer, the last event) at the same time on the same CPU. Equal events with a different one in
/// between can be right: times in text are cut to microseconds, and within one, a program can arm
/// and cancel a timer twice.
#[derive(Default)]
pub(super) struct Repeats {
    pub(super) count: u64,
    /// The line of the first one.
    pub(super) first: u32,
    /// Where the events of the current time begin.
    begin: usize,
}

impl Repeats {
    /// Takes the event at a place.
    fn see(&mut self, records: &[Record], at: usize) {
        let record = &records[at];
        if at > 0 && records[at - 1].time != record.time {
            self.begin = at;
        }
        // Compare with at most this many events of the same time. Otherwise a file in which all
        // events have the same time could take quadratic time.
        const NEAR: usize = 64;
        let near = records[self.begin.max(at.saturating_sub(NEAR))..at].iter();
        let mut here = near.rev().filter(|other| other.cpu == record.cpu);
        let timer = record.event.timer();
        let related = here.find(|other| timer.is_none() || other.event.timer() == timer);
        if related.is_some_and(|last| last.event == record.event) {
            self.count += 1;
            self.first = if self.count == 1 { record.line } else { self.first };
        }
    }
}

/// Returns whether all events have the same time, though there are too many for that to be right.
pub(super) fn has_no_time(records: &List<Record>) -> bool {
    const FEW: usize = 100;
    records.len() >= FEW
        && records.first().map(|record| record.time) == records.last().map(|record| record.time)
}

/// One hour. A machine with a pending timer has an event more often than that.
pub(super) const LONG_NS: u64 = 3_600 * 1_000_000_000;

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

/// How many events of each kind there are, and how many on each CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// In the order of [`EventKind::ALL`].
    kinds: [usize; EventKind::ALL.len()],
    /// Of `write_msr`, and of `hrtimer_rearm`.
    pub(super) device_writes: [usize; 2],
    /// `None` if no event names the CPU.
    cpus: Vec<Option<usize>>,
}

impl Counts {
    pub(super) fn see(&mut self, record: &Record) {
        let kind = record.event.kind();
        self.kinds[kind as usize] += 1;
        self.device_writes[usize::from(kind == EventKind::HrtimerRearm)] +=
            usize::from(record.event.is_device_write());
        let target = record.event.target();
        let highest = target.map_or(record.cpu, |to| to.max(record.cpu));
        if self.cpus.len() <= highest.index() {
            self.cpus.resize(highest.index() + 1, None);
        }
        *self.cpus[record.cpu.index()].get_or_insert(0) += 1;
        if let Some(target) = target {
            self.cpus[target.index()].get_or_insert(0);
        }
    }

    pub(super) fn of(&self, kind: EventKind) -> usize {
        self.kinds[kind as usize]
    }

    /// Returns the number of CPUs that a machine has at least which has all named ones.
    pub(super) fn cpus(&self) -> u16 {
        self.cpus.len() as u16
    }

    /// Returns the CPUs in the events that a machine of `known` CPUs cannot have. CPU numbers can
    /// have gaps, so a CPU above `known` can be right: if the events name no more than `known` CPUs
    /// in all, and more than a thousandth of the events are on that CPU.
    pub(super) fn unknown_cpus(&self, known: u16) -> HashSet<CpuId> {
        const PER_MILLE: usize = 1;
        let has_too_many = self.cpus.iter().flatten().count() > usize::from(known);
        let all: usize = self.kinds.iter().sum();
        let is_unknown = |count: &usize| has_too_many || count * 1_000 <= all * PER_MILLE;
        let beyond = (0..).zip(&self.cpus).skip(known.into());
        let unknown = beyond.filter(|(_, count)| count.as_ref().is_some_and(is_unknown));
        unknown.map(|(cpu, _)| CpuId(cpu)).collect()
    }
}

/// Returns those of the CPUs without events that were not recorded: those on which at least so many
/// threads were woken, after which a CPU switches; or all, if the recording is of some CPUs only.
pub(super) fn unrecorded_cpus(
    records: &List<Record>,
    counts: &Counts,
    cpus: u16,
    wakeups_min: Option<usize>,
) -> Vec<CpuId> {
    let events = |cpu: &CpuId| counts.cpus.get(cpu.index()).copied().flatten();
    let is_wakeup =
        |event: &Event, cpu| event.kind() == EventKind::SchedWakeup && event.target() == Some(cpu);
    let wakeups = |cpu| records.iter().filter(|record| is_wakeup(&record.event, cpu)).count();
    let has_switches = counts.of(EventKind::SchedSwitch) > 0;
    let is_woken = |cpu, min| has_switches && events(&cpu).is_some() && wakeups(cpu) >= min;
    let silent = (0..cpus).map(CpuId).filter(|cpu| events(cpu).is_none_or(|count| count == 0));
    silent.filter(|cpu| wakeups_min.is_none_or(|min| is_woken(*cpu, min))).collect()
}

/// Counts the cancels of wheel timers, and those of timers that were not armed since their last
/// cancel. A timer that was pending when the recording began counts as armed once. Kernels that
/// record nothing of an idle thread hide armings of high-resolution timers, so these do not count.
/// Of those it counts the armings, and how many are said not to be pending though they were armed
/// and neither expired nor were cancelled since then.
#[derive(Default)]
pub(super) struct Cancels {
    pub(super) all: u64,
    pub(super) impossible: u64,
    pub(super) starts: u64,
    pub(super) unexpired: u64,
    is_armed: FxHashMap<TimerAddr, bool>,
}

impl Cancels {
    fn see(&mut self, event: &Event) {
        match *event {
            Event::TimerStart { timer, .. } => drop(self.is_armed.insert(timer, true)),
            Event::TimerCancel { timer } => {
                self.all += 1;
                self.impossible += u64::from(self.is_armed.insert(timer, false) == Some(false));
            }
            Event::HrtimerStart { timer, was_armed: Some(was_armed), .. } => {
                self.starts += 1;
                let is_armed = self.is_armed.insert(timer, true) == Some(true);
                self.unexpired += u64::from(is_armed && !was_armed);
            }
            Event::HrtimerCancel { timer }
            | Event::HrtimerExpireEntry { timer, .. }
            | Event::HrtimerStartExpired { timer } => drop(self.is_armed.remove(&timer)),
            _ => {}
        }
    }
}

/// Matches the entries of callbacks and interrupts with their exits, CPU by CPU. A pair that began
/// before the trace or ends after it does not count.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) whole: u64,
    /// Pairs of which one half is missing.
    pub(super) broken: u64,
    /// The first line that shows that one event of a pair is missing.
    pub(super) first: Option<u32>,
    /// For each CPU, the entries whose exits have not come yet, the innermost last, and whether an
    /// entry of each kind has come.
    cpus: Vec<(Vec<Entry>, [bool; PAIRS.len()])>,
}

const PAIRS: [[EventKind; 2]; 3] = [
    [EventKind::TimerExpireEntry, EventKind::TimerExpireExit],
    [EventKind::HrtimerExpireEntry, EventKind::HrtimerExpireExit],
    [EventKind::LocalTimerEntry, EventKind::LocalTimerExit],
];

/// Which of `PAIRS` it is, and its timer.
type Entry = (usize, Option<(Family, TimerAddr)>);

impl Pairs {
    fn see(&mut self, record: &Record, counts: &Counts) {
        let kind = record.event.kind();
        let Some(pair) = PAIRS.iter().position(|pair| pair.contains(&kind)) else { return };
        if counts.of(PAIRS[pair][1]) == 0 {
            // The recording was restricted to entries.
            return;
        }
        let this = (pair, record.event.timer());
        let cpus = &mut self.cpus;
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
            self.whole += 1;
            if unended > 0 { unended as u64 + 1 } else { 0 }
        } else {
            u64::from(began[pair])
        };
        if broken > 0 {
            self.broken += broken;
            self.first.get_or_insert(record.line);
        }
    }
}

/// What the events of a trace, in the order of their times, show of damage.
#[derive(Default)]
pub(super) struct Soundness {
    pub(super) repeats: Repeats,
    pub(super) pairs: Pairs,
    pub(super) cancels: Cancels,
    /// The longest time without an event, and the line after it.
    pub(super) silence: (Ns, u32),
}

impl Soundness {
    pub(super) fn of(records: &List<Record>, counts: &Counts) -> Soundness {
        let mut found = Soundness::default();
        let mut last = records.first().map_or(Ns::ZERO, |record| record.time);
        for (at, record) in records.iter().enumerate() {
            found.repeats.see(records, at);
            found.pairs.see(record, counts);
            found.cancels.see(&record.event);
            found.silence = found.silence.max((record.time.since(last), record.line));
            last = record.time;
        }
        found
    }
}

/// Counts the events that are earlier than one on a line before theirs, and those that are earlier
/// than one of their own CPU, each count with the first line. `records` are in the order of their
/// times, and those of equal times in that of their lines.
pub(super) fn out_of_order(records: &List<Record>) -> [(u64, u32); 2] {
    let mut found = [(0, u32::MAX); 2];
    // The first line of the later events: of all, and of each CPU.
    let (mut of_all, mut of_cpus) = (u32::MAX, Vec::new());
    for record in records.iter().rev() {
        let (line, cpu) = (record.line, record.cpu.index());
        of_cpus.resize(of_cpus.len().max(cpu + 1), u32::MAX);
        for (later, (count, first)) in [&mut of_all, &mut of_cpus[cpu]].into_iter().zip(&mut found)
        {
            if *later < line {
                *count += 1;
                *first = line.min(*first);
            }
            *later = line.min(*later);
        }
    }
    found
}
