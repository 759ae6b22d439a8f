//! A trace as a script: what was done to which timer, when, on which CPU.
//!
//! A kernel's records differ from such operations:
//! - An interrupt is a pair of records, with records of this and other CPUs in between. In a script
//!   it is one item, at the time when the interrupt began, with everything that its CPU did in it;
//!   see [`interrupt`].
//! - To restart a timer, or to expire it, the kernel removes it first, and some kernels record that
//!   as a cancel. The script has no such cancels; see [`paired`].
//! - Expiries are on the timers' own clocks, or in jiffies; see [`clocks`].
//! - The record of a start has the CPU that started the timer, and the record of its expiry the CPU
//!   on which the timer was. The script has the latter.
//! - Timers that were pending when the recording began have no recorded start. If such a timer
//!   expires, it is assumed to have been armed for that time. If it is cancelled or restarted
//!   first, its unknown start is left out.
//! - Some kernels do not record a CPU on its way into or out of idle, and events can get lost. The
//!   script also has the operations that must have happened without a record, and counts them; see
//!   [`inference`].

mod clocks;
mod deferral;
mod idle;
mod inference;
mod interrupt;
mod paired;
mod queues;
mod timers;
mod writer;

pub(super) use self::idle::{Turn, Turned};
pub(super) use self::queues::Choice;
use super::lateness::Lateness;
use crate::read::{EventKind, Family, Record, Trace};
use serde::Serialize;
use tickless_core::bases::WheelEvents;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Tick, Window};
use writer::Writer;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inference {
    #[default]
    On,
    Off,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) items: Vec<Item>,
    pub(super) ops: Vec<Op>,
    pub(super) starts: Vec<Start>,
    pub(super) families: Vec<Family>,
    /// For each timer, whether it ends the time slices of the scheduler. Linux 7.1 treats this
    /// timer as lazy: the device is not programmed when it is cancelled or moves later.
    pub(super) slices: Vec<bool>,
    /// Timers that were pending when the recording began, with assumed starts.
    pub(super) pending_at_start: Vec<Start>,
    pub(super) counts: [FamilyCounts; 2],
    /// For each callback function, the numbers of starts of wheel timers and of queue timers.
    pub(super) starts_by_function: Vec<[u64; 2]>,
    pub(super) late: Lateness,
    pub(super) unknown_cancels: u64,
    /// Operations without a record; see [`inference`].
    pub(super) inferred: u64,
    /// Starts that are left out, because their expiry cannot be converted to the replay's clock.
    pub(super) unplaced: u64,
    pub(super) has_interrupts: bool,
    pub(super) wheel: WheelEvents,
    pub(super) begins: Ns,
    pub(super) ends: Ns,
}

type Moment = (Ns, u32);

/// What one CPU did at one time: a timer interrupt, or an operation outside timer interrupts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) at: Ns,
    /// The index of the item's first record in the trace. It orders items of equal time.
    record: u32,
    pub(super) cpu: CpuId,
    pub(super) kind: ItemKind,
    ops: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ItemKind {
    Operation,
    Interrupt {
        /// The current time that the interrupt handler read: `at` or a little later.
        now: Ns,
        /// The time for which the device was programmed, or the earliest expiry of the timers that
        /// the interrupt expired; [`Ns::NEVER`] if unknown.
        due: Ns,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Start(u32),
    Cancel(u32),
    Expire(u32),
    /// A start that must have happened, though it and its device writes are not in the trace.
    InferredStart(u32),
    InferredCancel(u32),
    /// The kernel programs the device that the last interrupt left alone, if its policy is to
    /// defer this; see [`deferral`].
    Settle,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    pub timer: u32,
    pub window: Window,
    pub base: CpuId,
    pub wakes: Wakes,
}

/// How often the kernel performed each operation on one family of timers (wheel or queue).
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FamilyCounts {
    pub start: u64,
    pub restart: u64,
    pub cancel: u64,
    pub expire: u64,
    /// How many of the starts were followed by a cancel or a restart before the timer fired.
    #[serde(skip)]
    pub not_to_fire: u64,
}

impl FamilyCounts {
    /// Returns how many of all starts were cancelled or restarted before they fired, in percent.
    pub fn cancelled_percent(&self) -> f64 {
        100.0 * self.not_to_fire as f64 / self.start.max(1) as f64
    }
}

/// Returns what converts a trace to a script: the operations on its timers. O(n) in the number of
/// records.
pub(super) fn writer(trace: &Trace, inference: Inference) -> Writer {
    Writer::new(trace, inference, LeftOut::Nothing)
}

/// Writes a script like that of [`writer()`], but leaves out the operations on the CPUs' tick
/// timers, and the interrupts that expired nothing else. Also returns when CPUs were idle.
pub(super) fn write_without_ticks(trace: &Trace, inference: Inference) -> (Script, Vec<Turn>) {
    let writer = Writer::new(trace, inference, LeftOut::Ticks);
    let turns = idle::find(trace, &writer.clocks);
    (writer.write(trace, trace.records.iter().copied()), turns)
}

/// Writes a script like that of [`writer()`], but leaves out the timers of the scheduler's
/// slices, and the interrupts that expired nothing else. Also returns what a scheduler with such
/// timers does; `None` if the trace does not show who waits for a CPU.
pub(super) fn write_without_slices(
    trace: &Trace,
    inference: Inference,
) -> Option<(Script, Vec<Choice>)> {
    let writer = Writer::new(trace, inference, LeftOut::Slices);
    let choices = queues::find(trace, &writer.clocks)?;
    Some((writer.write(trace, trace.records.iter().copied()), choices))
}

/// The timers whose operations a script does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LeftOut {
    Nothing,
    /// The CPUs' ticks.
    Ticks,
    /// The timers that end the scheduler's time slices.
    Slices,
}

/// Returns the tick of a trace's kernel, or the default if it is not known.
pub(super) fn tick(trace: &Trace) -> Tick {
    trace.tick().and_then(|tick| Tick::new(tick.to_duration())).unwrap_or_default()
}

impl Script {
    fn new(trace: &Trace, clocks: &clocks::Clocks, families: Vec<Family>) -> Script {
        let has_interrupts = trace.count(EventKind::LocalTimerEntry) > 0;
        let mut timers = trace.records.iter().filter_map(|record| record.event.timer());
        let has_queue = timers.any(|(family, _)| family == Family::Queue);
        let time = |record: Option<&Record>| {
            record.map_or(Ns::ZERO, |record| clocks.replay_time(record.time))
        };
        Script {
            slices: vec![false; families.len()],
            families,
            starts_by_function: vec![[0; 2]; trace.names.iter().count()],
            has_interrupts,
            // Usually the tick advances the wheel. If the trace has neither the tick nor its
            // interrupt, the wheel needs an event device of its own.
            wheel: match has_interrupts || has_queue {
                true => WheelEvents::Tick,
                false => WheelEvents::Device,
            },
            begins: time(trace.records.first()),
            ends: time(trace.records.last()),
            ..Script::default()
        }
    }

    fn counts(&mut self, timer: u32) -> &mut FamilyCounts {
        &mut self.counts[self.families[timer as usize] as usize]
    }

    pub(super) fn ops(&self, item: &Item) -> &[Op] {
        &self.ops[item.ops.0 as usize..item.ops.1 as usize]
    }

    /// Adds an item behind those of the same moment. An interrupt is added when it has ended, a few
    /// items after its place, so its place is sought among these. What is further back is left to
    /// the sort at the end, which then has little to do and needs no memory.
    fn push(&mut self, (at, record): Moment, cpu: CpuId, kind: ItemKind, ops: &[Op]) {
        const NEAR: usize = 64;
        let from = self.ops.len() as u32;
        self.ops.extend_from_slice(ops);
        let item = Item { at, record, cpu, kind, ops: (from, self.ops.len() as u32) };
        let near = self.items.len().saturating_sub(NEAR);
        let is_before = |other: &Item| (other.at, other.record) <= (at, record);
        let place = self.items[near..].iter().rposition(is_before);
        self.items.insert(place.map_or(self.items.len(), |place| near + place + 1), item);
    }

    fn push_start(&mut self, start: Start) -> u32 {
        self.starts.push(start);
        self.starts.len() as u32 - 1
    }
}
