//! How many timers are on each level, and walking over them a slice at a time.

use super::place::{DEFERRABLE, Place};
use super::{DUE, LEVELS, OVERDUE, SLOTS, Wakes, Wheel};
use crate::link::WheelRef;
use crate::state::PendingIn;
use crate::time::Ns;

/// The number of a wheel's lists.
pub(crate) const LISTS: usize = OVERDUE + 1;

/// How many timers are where in a wheel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    /// On each level, deferrable ones left out.
    pub levels: [usize; LEVELS],
    /// Due, and waiting to be fired.
    pub due: usize,
    /// Deferrable, on whatever level.
    pub deferrable: usize,
}

impl Wheel {
    /// How many timers are on which level. O(occupied buckets), at most 576.
    pub fn by_level(&self) -> Levels {
        let mut found = Levels { due: self.due_live, ..Levels::default() };
        for (level, count) in found.levels.iter_mut().enumerate() {
            let mut live = self.levels[level].live;
            while live != 0 {
                *count +=
                    self.buckets[level * SLOTS + live.trailing_zeros() as usize].count as usize;
                live &= live - 1;
            }
        }
        let counted = found.levels.iter().sum::<usize>() + found.due;
        found.deferrable = self.len - counted;
        found
    }

    /// Visits the timers of whole lists, from this one on, as long as there is room. Returns the
    /// list to go on with, and `false` if the first one alone had more than there is room for.
    pub(crate) fn walk(
        &self,
        from: usize,
        room: usize,
        mut visit: impl FnMut(WheelRef, PendingIn),
    ) -> (usize, bool) {
        let mut left = room;
        for list in from..LISTS {
            let first = self.lists.front(list);
            let on_list = || core::iter::successors(first, |node| self.lists.after(*node));
            let long = on_list().take(left + 1).count();
            if long > left && left < room {
                return (list, true);
            }
            for node in on_list().take(left) {
                let place = Place::of(node);
                let is_due = list >= DUE || place.expiry() <= self.clk;
                let place =
                    if is_due { PendingIn::Due } else { PendingIn::Level(place.level() as u8) };
                visit(node, place);
            }
            if long > left {
                return (list + 1, false);
            }
            left -= long;
        }
        (LISTS, true)
    }

    /// When a pending timer comes due, and whether that wakes anybody.
    pub(crate) fn due_and_wakes(&self, node: WheelRef) -> (Ns, Wakes) {
        let place = Place::of(node);
        let wakes = if place.has(DEFERRABLE) { Wakes::No } else { Wakes::Yes };
        (self.tick.start(place.expiry()), wakes)
    }
}
