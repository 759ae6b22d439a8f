//! The operations of a recorded trace, grouped by the CPU that owns the timer (its *home*) and by
//! the CPU that performed the operation.
//!
//! They are stored only once, even if many simulated CPUs repeat them: [`steps`](super::steps)
//! converts the time of each operation for each CPU that performs it.

use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::replay::streams::{Event, Family, Start, Streams, What};

/// If the simulation has not fired a timer this long after the timer's recorded expiry, the timer
/// is cancelled or armed again, as its recorded callback did.
const CATCHES_UP: Ns = Ns(200_000);

#[derive(Debug)]
pub(super) struct Home {
    pub(super) timers: Vec<Timer>,
    pub(super) strands: Vec<Strand>,
}

#[derive(Debug)]
pub(super) struct Timer {
    pub(super) family: Family,
    /// The recorded expiries in order. Each has the new arming if its callback restarted the timer.
    pub(super) expiries: Vec<(Ns, Option<Start>)>,
}

/// The operations that one CPU of the trace performed on the timers of one home CPU.
#[derive(Debug)]
pub(super) struct Strand {
    pub(super) by: CpuId,
    pub(super) operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// When the operation was recorded. It is performed at `at`. Both are on the trace's clock.
    pub(super) recorded: Ns,
    pub(super) at: Ns,
    /// The index of the operation among all operations on timers of the same home CPU. It orders
    /// operations with equal times.
    pub(super) place: u32,
    pub(super) slot: u32,
    /// If the operation is an expiry, its index in the timer's list of expiries.
    pub(super) expiry: u32,
    pub(super) what: What,
}

impl Home {
    pub(super) fn all(streams: &Streams) -> Vec<Home> {
        // For each timer, its slot: its index among the timers of its home CPU.
        let mut slots = vec![0; streams.families.len()];
        for timers in &streams.homes {
            for (slot, &timer) in timers.iter().enumerate() {
                slots[timer as usize] = slot as u32;
            }
        }
        let homes = streams.homes.iter().zip(&streams.lives);
        homes.map(|(timers, life)| Home::new(streams, timers, life, &slots)).collect()
    }

    /// Numbers the expiries of each timer, and sorts operations by the CPU that performed them.
    fn new(streams: &Streams, timers: &[u32], life: &[Event], slots: &[u32]) -> Home {
        let timer =
            |&timer: &u32| Timer { family: streams.families[timer as usize], expiries: Vec::new() };
        let mut home = Home { timers: timers.iter().map(timer).collect(), strands: Vec::new() };
        for (place, event) in life.iter().enumerate() {
            let slot = slots[event.timer as usize];
            let (mut at, mut expiry) = (event.at, 0);
            if let What::Expire(again) = event.what {
                let expiries = &mut home.timers[slot as usize].expiries;
                expiry = expiries.len() as u32;
                expiries.push((event.at, again));
                at = at.after(CATCHES_UP);
            }
            let Event { at: recorded, what, .. } = *event;
            let operation = Operation { recorded, at, place: place as u32, slot, expiry, what };
            home.strand(event.cpu).operations.push(operation);
        }
        for strand in &mut home.strands {
            strand.operations.sort_by_key(|operation| operation.at);
        }
        home
    }

    /// Returns the list of what the CPU `by` did with these timers. Adds an empty list if needed.
    fn strand(&mut self, by: CpuId) -> &mut Strand {
        let found = self.strands.iter().position(|strand| strand.by == by);
        let place = found.unwrap_or_else(|| {
            self.strands.push(Strand { by, operations: Vec::new() });
            self.strands.len() - 1
        });
        &mut self.strands[place]
    }
}

impl Strand {
    /// Returns all operations recorded in this interval, and perhaps some before or after it.
    pub(super) fn around(&self, recorded: &Range<Ns>) -> &[Operation] {
        // An operation is performed at its recorded time or up to `CATCHES_UP` later, and the list
        // is sorted by the time of performing.
        let last = recorded.end.after(CATCHES_UP);
        let first = self.operations.partition_point(|operation| operation.at < recorded.start);
        let count = self.operations[first..].partition_point(|operation| operation.at < last);
        &self.operations[first..first + count]
    }
}

impl Timer {
    pub(super) fn expired_before(&self, at: Ns) -> u32 {
        self.expiries.partition_point(|expiry| expiry.0 < at) as u32
    }
}
