//! Puts timers on the lists of the wheel and takes them off, with the marks of buckets that have
//! timers, and the counts of those that cause wakeups.

use super::place::WheelPlace;
use super::{DUE, LANES, OVERDUE, SLOTS, Wheel};
use crate::link::WheelRef;
use crate::time::Ns;

impl Wheel {
    /// Puts a timer on the list of its proper bucket.
    #[inline(always)]
    pub(super) fn put(&mut self, node: WheelRef, deadline: Ns, notes: u64) -> WheelPlace {
        let Some((place, list)) = self.placement(deadline, notes) else {
            return self.put_due(node, WheelPlace::new(self.clk, 0, notes), OVERDUE);
        };
        self.put_on(node, place, list);
        if self.is_exact {
            // Also records that the list is not sorted.
            self.mark_occupied(place, list);
        }
        place
    }

    /// Puts a timer on a list of a bucket. The caller marks the list of an exact wheel.
    #[inline(always)]
    pub(crate) fn put_on(&mut self, node: WheelRef, place: WheelPlace, list: usize) {
        node.set_place(place.0);
        let bucket = list / LANES;
        let was_empty = self.lists.push_back(list, node);
        // Below, the node's place is read again, so that it takes no register until then.
        // If the list was not empty, its bit is set already.
        if was_empty {
            self.mark_occupied(WheelPlace::of(node), list);
        }
        if place.is_deferrable() {
            self.deferrable += 1;
            return;
        }
        if self.bucket(bucket).count == 0 {
            self.mark_live(WheelPlace::of(node));
        }
        self.bucket(bucket).count += 1;
    }

    /// Puts a timer that is due on `DUE` or `OVERDUE`.
    #[inline(never)]
    pub(super) fn put_due(&mut self, node: WheelRef, place: WheelPlace, list: usize) -> WheelPlace {
        node.set_place(place.0);
        self.lists.push_back(list, node);
        let waiting = if place.is_deferrable() { &mut self.deferrable } else { &mut self.due_live };
        *waiting += 1;
        place
    }

    /// Sets the bits of a list's bucket and level, so that expiry finds the list.
    #[inline(always)]
    fn mark_occupied(&mut self, place: WheelPlace, list: usize) {
        self.bucket(list / LANES).lanes |= (1 | 1 << LANES) << (list % LANES);
        self.level(place.level()).occupied |= 1 << place.slot();
        self.next_mark = self.next_mark.min(place.expiry());
    }

    #[inline(always)]
    fn mark_live(&mut self, place: WheelPlace) {
        self.level(place.level()).live |= 1 << place.slot();
    }

    #[inline(always)]
    pub(crate) fn unlink(&mut self, node: WheelRef) {
        if self.is_walked {
            self.forget(node);
        }
        self.uncount(WheelPlace::of(node));
        self.take_off_list(node);
    }

    /// Cancels a pending timer if that concerns its bucket alone: it wakes and is not due, and no
    /// walk is in progress. Otherwise returns `false`.
    #[inline(always)]
    pub(crate) fn try_unlink(&mut self, node: WheelRef) -> bool {
        let place = WheelPlace::of(node);
        if self.is_walked || place.is_deferrable() || place.expiry() <= self.clk {
            return false;
        }
        self.uncount_in_bucket(place);
        self.take_off_list(node);
        true
    }

    /// Makes sure that neither `run_ahead` nor `cursor` refers to a timer that is about to be
    /// removed: stops `run_ahead`, and moves `cursor` to the next timer.
    #[inline]
    fn forget(&mut self, node: WheelRef) {
        self.run_ahead.stop();
        if self.cursor.is_before(node) {
            self.cursor.go_on_to(self.lists.after(node));
        }
        self.is_walked = self.cursor.is_inside();
    }

    /// Moves all timers of the list `from` to the end of the list `onto`.
    #[inline]
    pub(super) fn splice(&mut self, from: usize, onto: usize) {
        self.lists.splice(from, onto);
        self.cursor.leave_list(from);
    }

    /// Takes a timer off its list, and clears the bits of a bucket that becomes empty.
    #[inline(always)]
    fn take_off_list(&mut self, node: WheelRef) {
        if let Some(list) = self.lists.unlink(node).filter(|&list| list < DUE) {
            let number = list / LANES;
            let bucket = self.bucket(number);
            bucket.lanes &= !(1 << (list % LANES));
            if bucket.is_empty() {
                self.level(number / SLOTS).occupied &= !(1 << (number % SLOTS));
            }
        }
    }

    #[inline]
    pub(super) fn uncount_due(&mut self, place: WheelPlace) {
        debug_assert!(place.expiry() <= self.clk, "a timer is on the due list before it is due");
        if place.is_deferrable() {
            self.deferrable -= 1;
        } else {
            self.due_live -= 1;
        }
    }

    /// Subtracts a timer from the counts of its bucket, or of the due or deferrable timers.
    #[inline(always)]
    fn uncount(&mut self, place: WheelPlace) {
        if place.is_deferrable() {
            self.deferrable -= 1;
            return;
        }
        if place.expiry() <= self.clk {
            self.due_live -= 1;
            return;
        }
        self.uncount_in_bucket(place);
    }

    #[inline(always)]
    fn uncount_in_bucket(&mut self, place: WheelPlace) {
        let bucket = self.bucket(place.bucket());
        bucket.count -= 1;
        if bucket.count == 0 {
            self.level(place.level()).live &= !(1 << place.slot());
        }
    }
}
