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
use crate::list::List;
use crate::read::{EventKind, Family, Record, Trace};
use clocks::Clocks;
use serde::Serialize;
use std::ops::Range;
use tickless_core::bases::WheelEvents;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Tick, Window};
use timers::Timers;
use writer::Writer;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inference {
    #[default]
    On,
    Off,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    /// In the order of their times, once the script is written.
    pub(super) items: List<Item>,
    /// Items that came so late that their places were no longer near the end.
    stray: List<Item>,
    pub(super) ops: List<Op>,
    pub(super) starts: List<Start>,
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
    /// Timer interrupts that expired no timer.
    pub(super) spurious: u64,
    /// Operations without a record; see [`inference`].
    pub(super) inferred: u64,
    /// Starts that are left out, because their expiry cannot be converted to the replay's clock.
    pub(super) unplaced: u64,
    pub(super) has_interrupts: bool,
    /// For each CPU, its interrupts in their order.
    pub(super) interrupts: Vec<List<Delivery>>,
    pub(super) wheel: WheelEvents,
    pub(super) begins: Ns,
    pub(super) ends: Ns,
}

type Moment = (Ns, u32);

/// The event of a device, as a timer interrupt shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) at: Ns,
    /// The time for which the device was programmed, or the earliest expiry of the timers that the
    /// interrupt expired; [`Ns::NEVER`] if unknown.
    pub(super) due: Ns,
}

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

impl Item {
    fn moment(&self) -> Moment {
        (self.at, self.record)
    }

    /// Returns where the item's operations are.
    pub(super) fn ops(&self) -> Range<usize> {
        self.ops.0 as usize..self.ops.1 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ItemKind {
    Operation,
    Interrupt {
        /// The current time that the interrupt handler read: `at` or a little later.
        now: Ns,
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
    (writer.write(trace), turns)
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
    Some((writer.write(trace), choices))
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
    fn new(trace: &Trace, clocks: &Clocks, timers: &Timers) -> Script {
        let has_interrupts = trace.count(EventKind::LocalTimerEntry) > 0;
        let has_queue = timers.families.contains(&Family::Queue);
        let time = |record: Option<&Record>| {
            record.map_or(Ns::ZERO, |record| clocks.replay_time(record.time))
        };
        Script {
            interrupts: (0..trace.cpus).map(|_| List::one_of(trace.cpus.into())).collect(),
            slices: timers.slices.clone(),
            families: timers.families.clone(),
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

    /// Adds an item behind those of the same moment. An interrupt is added when it has ended, a few
    /// items after its place, so its place is sought among these. The few that are further back
    /// are put into their places at the end.
    fn push(&mut self, (at, record): Moment, cpu: CpuId, kind: ItemKind, ops: &[Op]) {
        const NEAR: usize = 64;
        let from = self.ops.len() as u32;
        self.ops.extend_from_slice(ops);
        let item = Item { at, record, cpu, kind, ops: (from, self.ops.len() as u32) };
        let near = self.items.len().saturating_sub(NEAR);
        let is_before = |other: &Item| other.moment() <= (at, record);
        match self.items[near..].iter().rposition(is_before) {
            None if near > 0 => self.stray.push(item),
            place => {
                self.items.push(item);
                self.items[place.map_or(near, |place| near + place + 1)..].rotate_right(1);
            }
        }
    }

    /// Puts the stray items into their places.
    fn finish(&mut self) {
        // The sort is stable, because an inferred operation has the record of the one that it
        // precedes.
        self.stray.sort_by_key(Item::moment);
        let (mut from, mut strays) = (self.items.len(), self.stray.len());
        self.items.extend_from_slice(&self.stray);
        while let Some(last) = strays.checked_sub(1) {
            let (to, stray) = (from + last, self.stray[last]);
            if from == 0 || self.items[from - 1].moment() <= stray.moment() {
                self.items[to] = stray;
                strays = last;
            } else {
                self.items[to] = self.items[from - 1];
                from -= 1;
            }
            self.items.pass(to);
        }
    }

    fn push_start(&mut self, start: Start) -> u32 {
        self.starts.push(start);
        self.starts.len() as u32 - 1
    }
}
