//! Lets coarse timers fire at their exact deadlines, for virtual clocks, which jump from one event
//! to the next. (With a real clock, a coarse timer fires later, when its bucket comes due.)
//!
//! The caller asks for the [earliest deadline](Wheel::earliest_deadline), and then
//! [gathers](Wheel::gather) the timers that are due. On each level, the earliest deadline is in the
//! first bucket with timers, on its first list with timers. The first look at a list after a timer
//! was added sorts the list: n log n for n timers, under the base's lock and with an allocation.
//! The time for which the lock is held is therefore not bounded, so bases with a real clock do not
//! use this module. Equal deadlines stay in the order of arming: those on higher levels were armed
//! earlier (W4).

use super::place::{WheelPlace, lane};
use super::{DUE, LANES, LEVELS, SLOTS, Wheel};
use crate::link::WheelRef;
use crate::time::Ns;
use alloc::vec::Vec;

impl Wheel {
    /// Makes the wheel fire timers exactly at their deadlines. From then on, due timers must be
    /// [gathered](Wheel::gather) before they are popped. The wheel must be empty.
    pub fn make_exact(&mut self) {
        self.is_exact = true;
        self.clk_until = Ns::ZERO;
    }

    /// Returns the earliest deadline of a timer that is in a bucket and not deferrable;
    /// [`Ns::NEVER`] if there is none. A timer beyond the wheel's reach counts with the time at
    /// which it is placed again.
    pub fn earliest_deadline(&mut self, deadline: impl Fn(WheelRef) -> Ns) -> Ns {
        let mut earliest = Ns::NEVER;
        for level in 0..LEVELS {
            if self.levels[level].live == 0 {
                continue;
            }
            let first = (self.clk >> (3 * level)) + 1;
            let ahead = self.levels[level].live.rotate_right((first % SLOTS as u64) as u32);
            let slot = (first + u64::from(ahead.trailing_zeros())) as usize % SLOTS;
            for lane in 0..LANES {
                let list = self.sorted((level * SLOTS + slot) * LANES + lane, &deadline);
                let wakes = |node: &WheelRef| !WheelPlace::of(*node).is_deferrable();
                let first = self.lists.nodes(list).find(wakes);
                if let Some(node) = first {
                    earliest = earliest.min(deadline(node).min(self.due_at(node)));
                    // Check all lists of a bucket on the last level: the bucket of a timer beyond
                    // the wheel's reach does not depend on its deadline, so it can be on any list.
                    if level < LEVELS - 1 {
                        break;
                    }
                }
            }
        }
        earliest
    }

    /// Moves all timers with a deadline at or before `by` to the end of the due list. Returns
    /// whether there were any. The moved timers are in the order of deadlines only if `by` is no
    /// later than the [earliest deadline](Self::earliest_deadline).
    pub fn gather(&mut self, by: Ns, deadline: impl Fn(WheelRef) -> Ns) -> bool {
        let last = self.tick.ceil(by).saturating_sub(1);
        let mut has_gathered = false;
        for level in (0..LEVELS).rev() {
            let slot = ((last >> (3 * level)) + 1) as usize % SLOTS;
            if self.buckets()[level * SLOTS + slot].is_empty() {
                continue;
            }
            for lane in 0..=lane(last, level) {
                let list = self.sorted((level * SLOTS + slot) * LANES + lane, &deadline);
                while let Some(node) = self.lists.front(list).filter(|&node| deadline(node) <= by) {
                    let place = WheelPlace::of(node);
                    self.unlink(node);
                    self.put_due(node, place.due_at(self.clk), DUE);
                    has_gathered = true;
                }
            }
        }
        has_gathered
    }

    /// Sorts a list by deadline (stably) if a timer was added since the list was last sorted.
    fn sorted(&mut self, list: usize, deadline: &impl Fn(WheelRef) -> Ns) -> usize {
        let is_changed = 1 << (LANES + list % LANES);
        if self.bucket(list / LANES).lanes & is_changed != 0 {
            self.bucket(list / LANES).lanes &= !is_changed;
            let mut timers: Vec<_> = self.lists.nodes(list).collect();
            timers.sort_by_key(|&node| deadline(node));
            for &node in &timers {
                self.lists.unlink(node);
                self.lists.push_back(list, node);
            }
            // The order has changed, so a walk over all timers that stopped in this list leaves it.
            self.cursor.leave_list(list);
        }
        list
    }
}
