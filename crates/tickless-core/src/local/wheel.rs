//! The wheel of [`LocalTimers`](super::LocalTimers): levels and buckets as those of the shared
//! [wheel](crate::queues::wheel), of numbers instead of nodes.
//!
//! A bucket is a chain of slot numbers ([`Chains`]). A timer stays in the bucket where it was put,
//! however often it is pushed out, until that bucket comes due; then it goes where it belongs.

mod expiry;

use super::chains::Chains;
use super::table::{LEVELS_MAX, Record, Records, STATES};
use crate::queues::wheel::{LEVELS, PushOut, REACH, SLOTS, level_of};
use crate::time::{Ns, Tick};
use alloc::vec::Vec;

const BUCKETS: usize = LEVELS * SLOTS;
/// What has come due and waits to be popped.
const DUE: usize = BUCKETS;
/// What was armed for the past since the last advance: popped from the next one on, so that a
/// callback which arms its own timer for the past cannot hold one up forever.
const OVERDUE: usize = DUE + 1;
/// The least number of ticks between the clock's and a timer's, by the timer's level.
const NEAREST: [u64; LEVELS] = nearest();

const _: () = assert!(LEVELS <= LEVELS_MAX as usize);

const fn nearest() -> [u64; LEVELS] {
    let mut nearest = [0; LEVELS];
    let mut level = 1;
    while level < LEVELS {
        // Somewhere between the reach of 62 granules and that of 64 of the level below.
        let (mut low, mut high) = (60 << (3 * (level - 1)), 66 << (3 * (level - 1)));
        while low + 1 < high {
            let middle = (low + high) / 2;
            if level_of(middle) < level { low = middle } else { high = middle }
        }
        nearest[level] = high;
        level += 1;
    }
    nearest
}

pub(super) struct Wheel {
    tick: Tick,
    /// Everything due at or before this tick is on `DUE` or `OVERDUE`.
    clk: u64,
    /// When that tick began.
    clk_began: Ns,
    /// The tick of the last advance.
    target: u64,
    /// At or before the earliest bucket that is not empty.
    next_mark: u64,
    /// By state: a timer that is farther away than this may stay on its level, for that is fine
    /// enough. No distance is greater than what stands for timers that are on none.
    stays_beyond: [Ns; STATES],
    push_out: PushOut,
    /// By chain: when the granule begins that its bucket is for; of what is looked at with the next
    /// advance, zero.
    begins: Vec<Ns>,
    chains: Chains,
    pending: usize,
}

impl Wheel {
    pub(super) fn new(tick: Tick, push_out: PushOut, now: Ns) -> Wheel {
        let clk = tick.floor(now);
        let mut stays_beyond = [Ns::NEVER; STATES];
        if push_out == PushOut::Lazy {
            // Pending timers and those that are not.
            for states in stays_beyond.chunks_exact_mut(STATES / 2) {
                for (beyond, nearest) in states.iter_mut().zip(NEAREST) {
                    *beyond = tick.start(if nearest == 0 { 0 } else { nearest + 1 });
                }
            }
        }
        Wheel {
            tick,
            clk,
            clk_began: tick.start(clk),
            target: clk,
            next_mark: u64::MAX,
            stays_beyond,
            push_out,
            begins: alloc::vec![Ns::ZERO; OVERDUE + 1],
            chains: Chains::new(OVERDUE + 1, DUE),
            pending: 0,
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Makes room for so many timers.
    pub(super) fn reserve(&mut self, timers: usize) {
        self.chains.reserve(timers);
    }

    /// Arms a timer anew for a later time, if its number may stay where it is: its bucket comes due
    /// before that time, or after it by no more than the level's granule, which is fine enough
    /// for the distance.
    #[inline]
    pub(super) fn push_out(
        &mut self,
        record: &mut Record,
        generation: u32,
        time: Ns,
        distance: Ns,
    ) -> bool {
        let beyond = self.stays_beyond[record.state_in(generation)];
        let stays =
            distance > beyond && (time >= record.time || self.is_looked_at_by(record.place, time));
        if stays {
            record.time = time;
            if !record.is_pending() {
                record.set_pending();
                self.pending += 1;
            }
        }
        stays
    }

    /// Is the number at this place, which is on a chain, looked at no later than that of a timer
    /// for `time` on the same level would be?
    #[inline]
    fn is_looked_at_by(&self, place: u32, time: Ns) -> bool {
        let begins = self.chains.chain_of(place).and_then(|chain| self.begins.get(chain));
        begins.is_some_and(|&begins| time > begins)
    }

    /// Arms a timer, wherever it is.
    #[inline]
    pub(super) fn arm(&mut self, records: &mut Records, slot: u32, time: Ns) {
        self.detach(records, slot);
        if self.clk < self.target {
            self.catch_up();
        }
        self.place(records, slot, time);
        self.pending += 1;
    }

    /// Takes a pending timer off; its number stays where it is, unless order is to be exact.
    #[inline]
    pub(super) fn cancel(&mut self, record: &mut Record, slot: u32) {
        self.pending -= 1;
        record.cancel();
        if self.push_out == PushOut::Eager {
            self.chains.remove(record.place, slot);
            record.rest();
        }
    }

    /// Takes a timer off, and its number with it.
    #[inline]
    pub(super) fn detach(&mut self, records: &mut Records, slot: u32) {
        if let Some(record) = records.record(slot)
            && record.is_on_chain()
        {
            self.pending -= usize::from(record.is_pending());
            self.chains.remove(record.place, slot);
            record.rest();
        }
    }

    /// Puts a timer into its bucket, as seen from the clock.
    #[inline]
    fn place(&mut self, records: &mut Records, slot: u32, time: Ns) {
        let (chain, level) = self.bucket(time);
        let place = self.chains.push(chain, slot, records);
        if let Some(record) = records.record(slot) {
            record.arm(time, level as u32, place);
        }
    }

    #[inline]
    fn bucket(&mut self, time: Ns) -> (usize, usize) {
        if time <= self.clk_began {
            return (OVERDUE, 0);
        }
        // Counted from the tick before it: a granule ends with the expiry of its bucket.
        let last = self.tick.floor(Ns(time.0 - 1));
        let between = last - self.clk;
        // Beyond the last level the distance is clamped: the rest is armed when that has passed.
        let (last, level) = if between < REACH {
            (last, level_of(between))
        } else {
            (self.clk + REACH - 1, LEVELS - 1)
        };
        let granules = (last >> (3 * level)) + 1;
        let chain = level * SLOTS + granules as usize % SLOTS;
        if self.chains.is_empty(chain) {
            self.next_mark = self.next_mark.min(granules << (3 * level));
            self.begins[chain] = self.tick.start((granules - 1) << (3 * level));
        }
        (chain, level)
    }

    /// When the wheel should be advanced next: never after a timer comes due, but perhaps before,
    /// if all timers of a bucket were pushed out. O(levels).
    #[inline]
    pub(super) fn next_event(&self) -> Ns {
        if self.pending == 0 {
            return Ns::NEVER;
        }
        if self.chains.occupied(DUE / 64) != 0 {
            return self.clk_began;
        }
        self.tick.start(self.earliest())
    }

    /// When the earliest bucket expires that is not empty, in ticks; `u64::MAX` if there is none.
    #[inline]
    fn earliest(&self) -> u64 {
        let mut earliest = u64::MAX;
        for level in 0..LEVELS {
            let occupied = self.chains.occupied(level);
            if occupied != 0 {
                // A level's buckets lie one to 64 granules after the one the clock is in.
                let first = (self.clk >> (3 * level)) + 1;
                let ahead = occupied.rotate_right((first % SLOTS as u64) as u32).trailing_zeros();
                earliest = earliest.min((first + u64::from(ahead)) << (3 * level));
            }
        }
        earliest
    }

    /// The buckets that expire at a tick, the coarsest first: of timers with one deadline, those on
    /// the higher level were armed earlier (W4).
    fn buckets_at(tick: u64) -> impl Iterator<Item = usize> {
        let levels =
            (0..LEVELS).rev().filter(move |level| tick.trailing_zeros() >= 3 * *level as u32);
        levels.map(move |level| level * SLOTS + (tick >> (3 * level)) as usize % SLOTS)
    }
}
