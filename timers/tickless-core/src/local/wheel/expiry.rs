//! Expiry: collecting the buckets that have come due, popping their timers, and moving timers that
//! were pushed out (armed again for a later time) to their proper buckets.

use super::{DUE, LocalWheel, OVERDUE};
use crate::local::chains::PER_CHUNK;
use crate::local::key::Key;
use crate::local::table::{NO_SLOT, Records, SlotKey, Table};
use crate::time::Ns;

impl LocalWheel {
    /// Sets the current time. Returns false if no timer is due; true if some timer is perhaps due.
    #[inline]
    pub(in crate::local) fn advance(&mut self, now: Ns) -> bool {
        self.target = self.target.max(self.tick.floor(now));
        if self.next_mark > self.target {
            self.set_clk(self.target);
            return false;
        }
        self.chains.splice(OVERDUE, DUE);
        true
    }

    /// Removes and returns the next timer that is due by the time of the last advance, in the order
    /// of expiry. O(1) amortised. `budget` is lowered by one for each examined timer; at zero
    /// nothing is popped, and the remaining timers stay first in line.
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
            } else if !self.relocate(&mut table.records, slot) {
                continue;
            }
            self.pending -= 1;
            return Some(key);
        }
        None
    }

    /// Pops all due timers, a chunk (a cache line of slot numbers) at a time, and passes their keys
    /// to `fired`. The result is that of popping them one by one, at a lower cost.
    #[inline]
    pub(in crate::local) fn pop_all<T>(
        &mut self,
        table: &mut Table<T>,
        budget: &mut usize,
        mut fired: impl FnMut(&[Key]),
    ) {
        loop {
            // Pop singly if the budget is less than a chunk, or part of the chunk has been popped.
            while *budget < PER_CHUNK as usize || self.chains.is_amid_chunk() {
                let Some(popped) = self.pop(table, budget) else { return };
                fired(&[Key::of_coarse(popped)]);
            }
            let chunk = self.chains.first_chunk(|slot| table.records.prefetch(slot));
            let Some((slots, held)) = chunk else {
                if self.step() {
                    continue;
                }
                return;
            };
            // The whole chunk leaves its chain. Pushed-out timers in it are put into other buckets.
            let mut due = [Key::NONE; PER_CHUNK as usize];
            let (mut others, clk_began) = (0, self.clk_began);
            let records = table.records.all();
            for (key, &slot) in due.iter_mut().zip(slots) {
                match records.get_mut(slot as usize) {
                    Some(record) if record.is_pending() && record.time <= clk_began => {
                        let fires = record.key(slot);
                        record.rest();
                        *key = Key::of_coarse(fires);
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
                let count = self.relocate_others(&mut table.records, &slots, &mut due);
                fired(&due[..count]);
            }
        }
    }

    /// Relocates the timers of a dropped chunk that have no key in `due` yet, adds the keys of
    /// those that are due after all, and moves all keys to the front. Returns the number of keys.
    #[inline(never)]
    fn relocate_others(
        &mut self,
        records: &mut Records,
        slots: &[u32; PER_CHUNK as usize],
        due: &mut [Key; PER_CHUNK as usize],
    ) -> usize {
        let mut count = 0;
        for (at, &slot) in slots.iter().enumerate() {
            let mut key = due[at];
            if key == Key::NONE && slot != NO_SLOT && self.relocate(records, slot) {
                self.pending -= 1;
                key = Key::of_coarse(records.key_of(slot));
            }
            if key != Key::NONE {
                due[count] = key;
                count += 1;
            }
        }
        count
    }

    /// Handles a timer that has been taken off its chain, and was cancelled or pushed out. Returns
    /// true if it fires after all, because its new deadline has come as well.
    #[inline(never)]
    fn relocate(&mut self, records: &mut Records, slot: u32) -> bool {
        let Some(record) = records.record(slot) else { return false };
        if !record.is_pending() {
            record.rest();
            return false;
        }
        if self.clk < self.target {
            // `place` chooses the timer's bucket by the distance from the wheel's clock to the
            // deadline, so the clock is brought up to date first.
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

    /// Advances the clock to the current time without examining any timer.
    #[cold]
    pub(super) fn catch_up(&mut self) {
        while self.step() {}
    }

    /// Moves the next buckets that come due, up to the time of the last advance, to the chain of
    /// due timers. Returns whether there were any.
    #[inline(never)]
    fn step(&mut self) -> bool {
        if self.next_mark <= self.target {
            let next = self.earliest();
            if next <= self.target {
                self.collect(next);
                return true;
            }
            self.next_mark = if self.chains.occupied(DUE / 64) == 0 { next } else { 0 };
        }
        self.set_clk(self.target);
        false
    }

    fn set_clk(&mut self, clk: u64) {
        debug_assert!(clk >= self.clk, "the wheel's clock went back");
        self.clk = clk;
        self.clk_began = self.tick.start(clk);
    }

    /// Sets the clock to `clk` and moves the buckets that expire then to the chain of due timers.
    fn collect(&mut self, clk: u64) {
        self.set_clk(clk);
        LocalWheel::buckets_at(clk).for_each(|bucket| self.chains.splice(bucket, DUE));
    }
}
