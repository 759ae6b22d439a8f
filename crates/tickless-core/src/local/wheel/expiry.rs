//! What has come due: collecting buckets, popping their timers, and putting those where they belong
//! that have been pushed out.

use super::{DUE, OVERDUE, Wheel};
use crate::link::SlotKey;
use crate::local::chains::PER_CHUNK;
use crate::local::key::{Family, Key};
use crate::local::table::{NO_SLOT, Records, Table};
use crate::queues::wheel::REACH;
use crate::time::Ns;

impl Wheel {
    /// Tells the wheel the time. Whether there may be anything to pop.
    #[inline]
    pub(in crate::local) fn advance(&mut self, now: Ns) -> bool {
        self.target = self.target.max(self.tick.floor(now));
        if self.chains.occupied(DUE / 64) != 0 {
            self.chains.splice(OVERDUE, DUE);
            return true;
        }
        if self.next_mark > self.target {
            self.set_clk(self.target);
            return false;
        }
        true
    }

    /// The next timer that is due by the time of the last advance, in order of expiry, not pending
    /// any more. Each call is O(1) amortised. `budget` is lowered by one
    /// for every timer looked at, and at zero nothing is popped: what is left stays first in line.
    #[inline(always)]
    pub(in crate::local) fn pop<T>(
        &mut self,
        table: &mut Table<T>,
        budget: &mut usize,
    ) -> Option<SlotKey> {
        while *budget > 0 {
            let Some(slot) = self.chains.pop(|slot| table.prefetch(slot)) else {
                if self.step() {
                    continue;
                }
                return None;
            };
            *budget -= 1;
            let record = table.records.record(slot)?;
            let key = record.key(slot);
            if record.is_pending() && record.time <= self.clk_began {
                record.rest();
            } else if !self.pass_over(&mut table.records, slot) {
                continue;
            }
            self.pending -= 1;
            return Some(key);
        }
        None
    }

    /// Pops what is due, a chunk at a time, and hands the keys to `fired`. As so many pops.
    #[inline]
    pub(in crate::local) fn pop_all<T>(
        &mut self,
        table: &mut Table<T>,
        budget: &mut usize,
        mut fired: impl FnMut(&[Key]),
    ) {
        loop {
            while *budget < PER_CHUNK as usize || self.chains.is_amid_chunk() {
                let Some(popped) = self.pop(table, budget) else { return };
                fired(&[Key::new(popped, Family::Coarse)]);
            }
            let chunk = self.chains.first_chunk(|slot| table.records.prefetch(slot));
            let Some((slots, held)) = chunk else {
                if self.step() {
                    continue;
                }
                return;
            };
            let mut due = [Key::NOBODY; PER_CHUNK as usize];
            let (mut others, clk_began) = (0, self.clk_began);
            let records = table.records.all();
            for (key, &slot) in due.iter_mut().zip(slots) {
                match records.get_mut(slot as usize) {
                    Some(record) if record.is_pending() && record.time <= clk_began => {
                        let fires = record.key(slot);
                        record.rest();
                        *key = Key::new(fires, Family::Coarse);
                    }
                    _ => others += 1,
                }
            }
            *budget -= held;
            self.pending -= due.len() - others;
            if others == 0 {
                self.chains.drop_first_chunk();
                fired(&due);
            } else {
                let slots = *slots;
                self.chains.drop_first_chunk();
                let count = self.pass_over_others(&mut table.records, &slots, &mut due);
                fired(&due[..count]);
            }
        }
    }

    /// Deals with those numbers of a chunk, not on a chain any more, of which no key is among
    /// those that fire; moves all keys to the front. Returns how many fire.
    #[inline(never)]
    fn pass_over_others(
        &mut self,
        records: &mut Records,
        slots: &[u32; PER_CHUNK as usize],
        due: &mut [Key; PER_CHUNK as usize],
    ) -> usize {
        let mut count = 0;
        for (at, &slot) in slots.iter().enumerate() {
            let mut key = due[at];
            if key == Key::NOBODY && slot != NO_SLOT && self.pass_over(records, slot) {
                self.pending -= 1;
                key = Key::new(records.key_of(slot), Family::Coarse);
            }
            if key != Key::NOBODY {
                due[count] = key;
                count += 1;
            }
        }
        count
    }

    /// When the next timer comes due, to the tick: timers that were pushed out are put where they
    /// belong until the first one is found that was not. A timer beyond the last level counts as
    /// due where that ends. O(levels) for each timer that is moved, and for the last.
    pub(in crate::local) fn settle(&mut self, records: &mut Records) -> Ns {
        if self.clk < self.target {
            self.catch_up();
        }
        let reach = self.tick.start(self.clk + REACH);
        while self.pending > 0 {
            let tick = self.earliest();
            let waiting = [DUE, OVERDUE].into_iter().map(|chain| (self.clk_began, chain));
            let buckets = Wheel::buckets_at(tick).map(|chain| (self.tick.start(tick), chain));
            let mut chains = waiting.chain(buckets);
            let Some((at, chain)) = chains.find(|(_, chain)| !self.chains.is_empty(*chain)) else {
                break;
            };
            let Some(slot) = self.chains.first(chain) else { return at };
            let Some(record) = records.record(slot) else { return at };
            if record.is_pending() && (record.time <= at || record.time > reach) {
                return at;
            }
            self.chains.remove(record.place, slot);
            self.pass_over(records, slot);
        }
        Ns::NEVER
    }

    /// Deals with a timer that is off its chain and not due there: it was cancelled, or pushed out
    /// and goes where it belongs. Returns whether that has come due as well by now.
    #[inline(never)]
    fn pass_over(&mut self, records: &mut Records, slot: u32) -> bool {
        let Some(record) = records.record(slot) else { return false };
        if !record.is_pending() {
            record.rest();
            return false;
        }
        if self.clk < self.target {
            // Where it belongs goes by how far away it is now.
            self.catch_up();
        }
        let time = record.time;
        if time <= self.clk_began {
            record.rest();
            return true;
        }
        self.place(records, slot, time);
        false
    }

    /// Brings the clock to the present without looking at any timer.
    #[cold]
    pub(super) fn catch_up(&mut self) {
        while self.step() {}
    }

    /// Goes on to the next bucket that has come due by the target, if there is one.
    #[inline(never)]
    fn step(&mut self) -> bool {
        if self.next_mark <= self.target {
            self.next_mark = self.earliest();
            if self.next_mark <= self.target {
                self.collect(self.next_mark);
                return true;
            }
        }
        self.set_clk(self.target);
        false
    }

    fn set_clk(&mut self, clk: u64) {
        debug_assert!(clk >= self.clk, "the wheel's clock went back");
        self.clk = clk;
        self.clk_began = self.tick.start(clk);
    }

    /// Collects the buckets that expire at `clk`.
    fn collect(&mut self, clk: u64) {
        self.set_clk(clk);
        Wheel::buckets_at(clk).for_each(|bucket| self.chains.splice(bucket, DUE));
    }
}
