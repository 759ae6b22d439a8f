//! A trace's operations as the CPUs of a machine take them: by the CPU at whose timers they are,
//! and by the one that did them.
//!
//! They are held once, however many CPUs of the machine play a CPU of the trace and however long
//! they do: [`steps`](super::steps) moves them to each one's own time as it comes to them.

use std::ops::Range;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::replay::streams::{Arming, Event, Family, Streams, What};

/// Nothing is expired later than this without somebody having a look: what the core has not fired
/// by then is done as the kernel did it.
const CATCHES_UP: Ns = Ns(200_000);

/// A CPU of the trace, by its timers.
#[derive(Debug)]
pub(super) struct Home {
    /// By slot: its timers.
    pub(super) timers: Vec<Timer>,
    /// What was done to them, by the CPU that did it.
    pub(super) strands: Vec<Strand>,
}

/// A timer.
#[derive(Debug)]
pub(super) struct Timer {
    pub(super) family: Family,
    /// When it expired, in order, and how its callback armed it again.
    pub(super) expiries: Vec<(Ns, Option<Arming>)>,
}

/// What one CPU did to the timers of one home.
#[derive(Debug)]
pub(super) struct Strand {
    pub(super) by: CpuId,
    /// In the order in which they are performed.
    pub(super) operations: Vec<Operation>,
}

/// Something that was done to a timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// When it was recorded, and when it is performed.
    pub(super) recorded: Ns,
    pub(super) at: Ns,
    /// Its place in the life of the home's timers: which of two comes first at one time.
    pub(super) place: u32,
    pub(super) slot: u32,
    /// Which of the timer's expiries it is, if it is one.
    pub(super) expiry: u32,
    pub(super) what: What,
}

impl Home {
    /// Each CPU of a trace.
    pub(super) fn all(streams: &Streams) -> Vec<Home> {
        // A timer is at home on one CPU: one table does for all of them.
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
    /// A stretch with all of it that was recorded between two moments of the trace.
    pub(super) fn around(&self, recorded: &Range<Ns>) -> &[Operation] {
        // None is performed before it was recorded, nor later than this after that.
        let last = recorded.end.after(CATCHES_UP);
        let first = self.operations.partition_point(|operation| operation.at < recorded.start);
        let count = self.operations[first..].partition_point(|operation| operation.at < last);
        &self.operations[first..first + count]
    }
}

impl Timer {
    /// How often it had expired before a moment of the trace.
    pub(super) fn expired_before(&self, at: Ns) -> u32 {
        self.expiries.partition_point(|expiry| expiry.0 < at) as u32
    }
}
