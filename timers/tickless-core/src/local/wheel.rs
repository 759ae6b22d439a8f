//! The wheel of [`LocalTimers`](super::LocalTimers): the levels and buckets of the shared
//! [wheel](crate::queues::wheel), but with slot numbers (indices in a table) as list elements.
//!
//! A bucket is a chain of slot numbers ([`Chains`]). A timer stays in its bucket, however often it
//! is pushed out (armed again for a later time), until the bucket comes due; then it is moved to
//! its proper bucket.

mod expiry;

use super::chains::Chains;
use super::table::{Record, Records, STATES, UNLINKED};
use crate::queues::wheel::{LEVELS, PushOut, REACH, SLOTS, level_of};
use crate::time::{Ns, Tick};
use alloc::vec::Vec;

const BUCKETS: usize = LEVELS * SLOTS;
/// The chain of timers that have come due and wait to be popped.
const DUE: usize = BUCKETS;
/// The chain of timers that were armed for the past since the last advance. They are popped from
/// the next advance on, so that a callback that arms its own timer for the past does not prolong
/// an advance for ever.
const OVERDUE: usize = DUE + 1;
/// For each level: the shortest time, in ticks, from the wheel's clock to the deadline of a timer
/// that is put on this level.
const NEAREST: [u64; LEVELS] = nearest();

const _: () = assert!(LEVELS <= UNLINKED as usize);

/// Returns, for each level, the least distance in ticks from the clock to a timer's deadline.
const fn nearest() -> [u64; LEVELS] {
    let mut nearest = [0; LEVELS];
    let mut level = 1;
    while level < LEVELS {
        // For each level, the value is between 60 and 66 granules of the level below (a granule is
        // the span of time of one bucket). Find it by bisection.
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

pub(super) struct LocalWheel {
    tick: Tick,
    /// The wheel's clock, in ticks: timers that are due by this tick are on `DUE` or `OVERDUE`.
    clk: u64,
    /// When the tick `clk` began.
    clk_began: Ns,
    /// The tick of the last advance.
    target: u64,
    /// A tick no later than the one at which the earliest bucket with timers expires; 0 while
    /// timers wait on `DUE` or `OVERDUE`.
    next_mark: u64,
    /// For each state of a timer's record: if the time to a timer's new deadline is longer than
    /// this, the level of its bucket is fine enough for that deadline, and the timer can stay
    /// there. `NEVER` for the states of timers on no chain.
    stays_beyond: [Ns; STATES],
    push_out: PushOut,
    /// For each chain: the beginning of the span of time (granule) whose timers it holds; zero for
    /// `DUE` and `OVERDUE`.
    begins: Vec<Ns>,
    chains: Chains,
    pending: usize,
}

impl LocalWheel {
    pub(super) fn new(tick: Tick, push_out: PushOut, now: Ns) -> LocalWheel {
        let clk = tick.floor(now);
        let mut stays_beyond = [Ns::NEVER; STATES];
        if push_out == PushOut::Lazy {
            // Two halves: pending timers, and others.
            for states in stays_beyond.chunks_exact_mut(STATES / 2) {
                for (beyond, nearest) in states.iter_mut().zip(NEAREST) {
                    *beyond = tick.start(if nearest == 0 { 0 } else { nearest + 1 });
                }
            }
        }
        LocalWheel {
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

    pub(super) fn reserve(&mut self, timers: usize) {
        self.chains.reserve(timers);
    }

    /// Arms a timer without moving its slot number, if it can stay in its bucket: the bucket comes
    /// due before the new time, or later by at most its granule (the span of time that it covers),
    /// and this is short enough for the time that remains. Returns whether the timer was armed.
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
            distance > beyond && (time >= record.time || self.is_due_by(record.place, time));
        if stays {
            record.time = time;
            if !record.is_pending() {
                record.set_pending();
                self.pending += 1;
            }
        }
        stays
    }

    /// Returns whether the bucket that contains this place comes due no later than the bucket of a
    /// timer for `time` on the same level.
    #[inline]
    fn is_due_by(&self, place: u32, time: Ns) -> bool {
        let begins = self.chains.chain_of(place).and_then(|chain| self.begins.get(chain));
        begins.is_some_and(|&begins| time > begins)
    }

    /// Arms a timer, pending or not, and moves it to its proper bucket.
    #[inline]
    pub(super) fn arm(&mut self, records: &mut Records, slot: u32, time: Ns) {
        self.detach(records, slot);
        if self.clk < self.target {
            self.catch_up();
        }
        self.place(records, slot, time);
        self.pending += 1;
    }

    /// Cancels a pending timer, whose slot number stays in its bucket. Returns false and changes
    /// nothing with `PushOut::Eager`: use `detach` then.
    #[inline]
    pub(super) fn cancel_usual(&mut self, record: &mut Record) -> bool {
        let is_lazy = self.push_out == PushOut::Lazy;
        if is_lazy {
            self.cancel_in_place(record);
        }
        is_lazy
    }

    /// Cancels a pending timer. Its slot number stays in its bucket.
    #[inline]
    pub(super) fn cancel_in_place(&mut self, record: &mut Record) {
        self.pending -= 1;
        record.cancel();
    }

    /// Cancels a timer if it is pending, and takes its slot number out of its bucket.
    #[inline]
    pub(super) fn detach(&mut self, records: &mut Records, slot: u32) {
        let Some(record) = records.record(slot) else { return };
        if record.is_on_chain() {
            self.pending -= usize::from(record.is_pending());
            self.chains.remove(record.place, slot);
            record.rest();
        }
    }

    /// Puts a timer into the bucket for the distance from the wheel's clock to its deadline.
    #[inline]
    fn place(&mut self, records: &mut Records, slot: u32, time: Ns) {
        let (chain, level) = self.bucket(time);
        let place = self.chains.push(chain, slot, records);
        if let Some(record) = records.record(slot) {
            record.arm(time, level as u32, place);
        }
    }

    /// Returns the chain and level for a timer that is due at `time`, and marks the chain as used.
    #[inline]
    fn bucket(&mut self, time: Ns) -> (usize, usize) {
        if time <= self.clk_began {
            self.next_mark = 0;
            return (OVERDUE, 0);
        }
        // A bucket expires at the end of its granule (the span of time that it covers), so a
        // deadline on a boundary belongs to the granule before it.
        let last = self.tick.floor(Ns(time.0 - 1));
        let between = last - self.clk;
        // A timer beyond the last level goes into the farthest bucket, and is placed again when
        // that bucket expires.
        let (last, level) = if between < REACH {
            (last, level_of(between))
        } else {
            (self.clk + REACH - 1, LEVELS - 1)
        };
        // A granule of a level is eight times as long as one of the level below, hence the shifts.
        let granules = (last >> (3 * level)) + 1;
        let chain = level * SLOTS + granules as usize % SLOTS;
        if self.chains.is_empty(chain) {
            self.next_mark = self.next_mark.min(granules << (3 * level));
            self.begins[chain] = self.tick.start((granules - 1) << (3 * level));
        }
        (chain, level)
    }

    /// Returns when the wheel should be advanced next: never later than the time at which the next
    /// timer comes due, and earlier if all timers of a bucket were cancelled or armed again for a
    /// later time. The cost depends on the number of levels only.
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

    /// Returns the tick at which the earliest bucket that is not empty expires, or `u64::MAX`.
    #[inline]
    fn earliest(&self) -> u64 {
        let mut earliest = u64::MAX;
        for level in 0..LEVELS {
            let occupied = self.chains.occupied(level);
            if occupied != 0 {
                // The buckets of a level expire 1 to 64 granules after the granule of the clock.
                let first = (self.clk >> (3 * level)) + 1;
                let ahead = occupied.rotate_right((first % SLOTS as u64) as u32).trailing_zeros();
                earliest = earliest.min((first + u64::from(ahead)) << (3 * level));
            }
        }
        earliest
    }

    /// Returns the buckets that expire at a tick, the coarsest first: of timers with the same
    /// deadline, those on the coarser level were armed earlier, and must fire first.
    fn buckets_at(tick: u64) -> impl Iterator<Item = usize> {
        let levels =
            (0..LEVELS).rev().filter(move |level| tick.trailing_zeros() >= 3 * *level as u32);
        levels.map(move |level| level * SLOTS + (tick >> (3 * level)) as usize % SLOTS)
    }
}
