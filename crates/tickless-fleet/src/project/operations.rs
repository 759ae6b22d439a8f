//! A trace's operations, grouped by the CPU whose timers they are on and by the CPU that did them.
//!
//! They are stored once, however many simulated CPUs repeat a CPU of the trace:
//! [`steps`](super::steps) moves each operation to the time of the CPU that performs it.

use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::replay::streams::{Arming, Event, Family, Streams, What};

/// How long after its recorded expiry a timer is handled as the kernel did, if the core has not
/// fired it by then.
const CATCHES_UP: Ns = Ns(200_000);

/// A CPU of the trace: its timers, and the operations on them.
#[derive(Debug)]
pub(super) struct Home {
    /// By slot: its timers.
    pub(super) timers: Vec<Timer>,
    /// The operations on them, by the CPU that did them.
    pub(super) strands: Vec<Strand>,
}

/// A timer.
#[derive(Debug)]
pub(super) struct Timer {
    pub(super) family: Family,
    /// Its expiries in order, and how its callback armed it again.
    pub(super) expiries: Vec<(Ns, Option<Arming>)>,
}

/// The operations of one CPU on the timers of one home.
#[derive(Debug)]
pub(super) struct Strand {
    pub(super) by: CpuId,
    /// In the order in which they are performed.
    pub(super) operations: Vec<Operation>,
}

/// An operation on a timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The times at which it was recorded and at which it is performed.
    pub(super) recorded: Ns,
    pub(super) at: Ns,
    /// Its place among the home's operations: the order of two at one time.
    pub(super) place: u32,
    pub(super) slot: u32,
    /// The number of the timer's expiry, if it is one.
    pub(super) expiry: u32,
    pub(super) what: What,
}

impl Home {
    /// Each CPU of a trace.
    pub(super) fn all(streams: &Streams) -> Vec<Home> {
        // A timer has one home, so one table serves all homes.
        let mut slots = vec![0; streams.families.len()];
        for timers in &streams.homes {
            for (slot, &timer) in timers.iter().enumerate() {
                slots[timer as usize] = slot as u32;
            }
        }
        let homes = streams.homes.iter().zip(&streams.lives);
        homes.map(|(timers, life)| Home::new(streams, timers, life, &slots)).collect()
    }

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
    /// The operations that include all that were recorded between two times.
    pub(super) fn around(&self, recorded: &Range<Ns>) -> &[Operation] {
        // An operation is performed between its recorded time and this much later.
        let last = recorded.end.after(CATCHES_UP);
        let first = self.operations.partition_point(|operation| operation.at < recorded.start);
        let count = self.operations[first..].partition_point(|operation| operation.at < last);
        &self.operations[first..first + count]
    }
}

impl Timer {
    /// The number of its expiries before a time of the trace.
    pub(super) fn expired_before(&self, at: Ns) -> u32 {
        self.expiries.partition_point(|expiry| expiry.0 < at) as u32
    }
}
