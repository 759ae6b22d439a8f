//! A trace as a script: what was done to which timer, when, on which CPU.
//!
//! What the kernel prints is close to that but not the same:
//! - an interrupt is a pair of records with others of the same CPU, and of other CPUs, in
//!   between. Here it is one item that holds what its CPU did, at the time it began; see
//!   [`interrupt`];
//! - taking a timer off to arm it anew, or to expire it, may print a cancel of its own. Those
//!   are left out; see [`halves`];
//! - expiries are on the timers' own clocks, or in jiffies; see [`clocks`];
//! - a start says on which CPU it was called, and an expiry on which one the timer really was.
//!   The latter counts;
//! - timers that were pending when the recording began show up out of nothing. One that
//!   expires is taken to have been armed for that moment; one that is cancelled or started
//!   anew first is left out, since nobody knows what it was armed for;
//! - a CPU on its way into or out of idle may be out of tracing's sight, and events may be
//!   lost. What must have happened all the same is inferred, and counted; see [`inference`].
//!
//! | file | what |
//! |---|---|
//! | `writer` | from records to operations |
//! | `numbers` | which timer each record is about |
//! | `halves` | which cancels are parts of other operations |
//! | `interrupt` | where interrupts begin and end, recorded or not |
//! | `inference` | what must have happened without a record |
//! | `clocks` | all times on one clock |

mod clocks;
mod halves;
mod inference;
mod interrupt;
mod numbers;
mod writer;

use super::family::Family;
use super::lateness::Lateness;
use crate::read::{EventKind, NameId, Record, Trace};
use tickless_core::bases::WheelEvents;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// Whether operations without a record are inferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inference {
    /// Where the record contradicts itself without them.
    #[default]
    On,
    /// Never: what is recorded and nothing else.
    Off,
}

/// What is to be replayed.
#[derive(Debug)]
pub(super) struct Script {
    /// In order of time.
    pub(super) items: Vec<Item>,
    /// What the items refer to.
    pub(super) ops: Vec<Op>,
    /// What the operations refer to.
    pub(super) starts: Vec<Start>,
    /// By timer.
    pub(super) families: Vec<Family>,
    /// By timer: is it the scheduler's slice, which Linux 7.1 treats as lazy?
    pub(super) slices: Vec<bool>,
    /// Timers that were pending when the recording began.
    pub(super) pending_at_start: Vec<Start>,
    pub(super) operations: Operations,
    /// By function: how often wheel timers with it were started, and hrtimers.
    pub(super) starts_by_function: Vec<(NameId, [u64; 2])>,
    /// How late the kernel expired what was armed within the recording.
    pub(super) late: Lateness,
    /// Cancels of timers whose start lies before the recording.
    pub(super) unknown_cancels: u64,
    /// Operations without a record; see [`inference`].
    pub(super) inferred: u64,
    /// Starts that cannot be placed in time, and are not performed.
    pub(super) unplaced: u64,
    pub(super) interrupts: Interrupts,
    /// How late half of the interrupts were, or later.
    pub(super) delivery: Ns,
    /// Who advances the wheel.
    pub(super) wheel: WheelEvents,
    pub(super) begins: Ns,
    pub(super) ends: Ns,
}

/// How interrupts were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interrupts {
    /// The trace has them.
    Recorded,
    /// They are taken to begin with the first expiry in them.
    Implied,
}

/// When something was, and with which record.
type Moment = (Ns, u32);

/// A moment of the trace on one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) at: Ns,
    /// Which record it began with: the order within one instant.
    record: u32,
    pub(super) cpu: CpuId,
    pub(super) kind: ItemKind,
    /// From and to where in [`Script::ops`].
    pub(super) ops: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ItemKind {
    /// Something done outside a timer interrupt.
    Operation,
    Interrupt {
        /// The present that the handler went by: `at` or a little later.
        now: Ns,
        /// The earliest expiry of what it expired; [`Ns::NEVER`] if that is not known.
        due: Ns,
    },
}

/// One operation on one timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// Arms a timer: the place in [`Script::starts`].
    Start(u32),
    /// Cancels a timer.
    Cancel(u32),
    /// The kernel ran the timer's callback.
    Expire(u32),
    /// The kernel armed a timer without a record of it or of what it told the device: the
    /// place in [`Script::starts`].
    Moved(u32),
    /// The same for a timer that was cancelled.
    Gone(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Start {
    pub(super) timer: u32,
    pub(super) window: Window,
    pub(super) base: CpuId,
    pub(super) wakes: Wakes,
}

/// How often the trace did what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Operations {
    pub(super) wheel: Counts,
    pub(super) queue: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) starts: u64,
    /// Starts of timers that were pending.
    pub(super) restarts: u64,
    pub(super) cancels: u64,
    pub(super) expiries: u64,
}

/// Turns a trace into a script. O(n log n).
pub(super) fn write(trace: &Trace, inference: Inference) -> Script {
    writer::Writer::new(trace, inference).write(trace)
}

impl Script {
    fn new(trace: &Trace, clocks: &clocks::Clocks, families: Vec<Family>) -> Script {
        let has_interrupts = trace.records.kinds().any(|kind| kind == EventKind::LocalTimerEntry);
        let has_queue = trace.records.kinds().any(EventKind::is_queue);
        let present =
            |record: Option<Record>| record.map_or(Ns::ZERO, |record| clocks.present(record.time));
        Script {
            items: Vec::new(),
            ops: Vec::new(),
            starts: Vec::new(),
            slices: vec![false; families.len()],
            families,
            pending_at_start: Vec::new(),
            operations: Operations::default(),
            starts_by_function: vec![(NameId::UNKNOWN, [0; 2]); trace.names.len()],
            late: Lateness::new(),
            unknown_cancels: 0,
            inferred: 0,
            unplaced: 0,
            interrupts: if has_interrupts { Interrupts::Recorded } else { Interrupts::Implied },
            delivery: Ns::ZERO,
            // With neither the tick nor its interrupt in the trace, nothing would ever look at
            // the wheel.
            wheel: if has_interrupts || has_queue {
                WheelEvents::Tick
            } else {
                WheelEvents::Device
            },
            begins: present(trace.records.first()),
            ends: present(trace.records.last()),
        }
    }

    fn counts(&mut self, timer: u32) -> &mut Counts {
        match self.families[timer as usize] {
            Family::Wheel => &mut self.operations.wheel,
            Family::Queue => &mut self.operations.queue,
        }
    }

    /// Puts items in order, once all are there.
    fn finish(&mut self) {
        // An interrupt stands where it ended; it belongs where it began. Stable, since an
        // inferred operation shares its record with what it was inferred from.
        self.items.sort_by_key(|item| (item.at, item.record));
        let late = |item: &Item| match item.kind {
            ItemKind::Interrupt { due, .. } if due != Ns::NEVER => Some(item.at.since(due)),
            _ => None,
        };
        let mut late: Vec<Ns> = self.items.iter().filter_map(late).collect();
        let middle = late.len() / 2;
        if middle < late.len() {
            self.delivery = *late.select_nth_unstable(middle).1;
        }
    }

    /// Adds operations that a CPU performed at one moment.
    fn push(&mut self, (at, record): Moment, cpu: CpuId, kind: ItemKind, ops: &[Op]) {
        let from = self.ops.len() as u32;
        self.ops.extend_from_slice(ops);
        self.items.push(Item { at, record, cpu, kind, ops: (from, self.ops.len() as u32) });
    }
}
