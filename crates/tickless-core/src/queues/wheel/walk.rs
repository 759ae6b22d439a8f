//! How many timers are on each level, and walking over them a slice at a time.

use super::place::WheelPlace;
use super::{DUE, LANES, LEVELS, OVERDUE, SLOTS, Wheel, WheelLists};
use crate::link::WheelRef;
use crate::state::PendingIn;

/// The number of a wheel's lists.
const LISTS: usize = OVERDUE + 1;

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

impl Levels {
    /// All of them.
    pub fn total(&self) -> usize {
        self.levels.iter().sum::<usize>() + self.due + self.deferrable
    }
}

/// Where a walk stands: before this list, or inside of it, if it has a ticket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    list: usize,
    ticket: u64,
}

impl At {
    pub(crate) const BEGIN: At = At { list: 0, ticket: 0 };

    pub(crate) fn is_over(self) -> bool {
        self.list >= LISTS
    }
}

/// Where the last walk that stopped inside a list stands. It is moved on when that timer goes, so
/// that it never names one that is gone.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The next timer that the walk visits; `None` if its list is through, or was collected.
    before: Option<WheelRef>,
    list: usize,
    /// Whose it is: the walk that has this ticket.
    ticket: u64,
}

impl Cursor {
    fn stop(&mut self, list: usize, before: WheelRef) -> u64 {
        *self = Cursor { before: Some(before), list, ticket: self.ticket + 1 };
        self.ticket
    }

    pub(super) fn is_inside(&self) -> bool {
        self.before.is_some()
    }

    #[inline]
    pub(super) fn is_before(&self, node: WheelRef) -> bool {
        self.before == Some(node)
    }

    #[cold]
    pub(super) fn go_on(&mut self, lists: &WheelLists) {
        self.before = self.before.and_then(|node| lists.after(node));
    }

    #[inline]
    pub(super) fn list_is_gone(&mut self, list: usize) {
        if self.list == list {
            self.before = None;
        }
    }
}

impl Wheel {
    /// How many timers are on which level. O(occupied buckets), at most 576.
    pub fn by_level(&self) -> Levels {
        let (due, deferrable) = (self.due_live, self.deferrable);
        let mut found = Levels { due, deferrable, ..Levels::default() };
        for (level, count) in found.levels.iter_mut().enumerate() {
            let mut live = self.levels[level].live;
            while live != 0 {
                *count +=
                    self.buckets[level * SLOTS + live.trailing_zeros() as usize].count as usize;
                live &= live - 1;
            }
        }
        found
    }

    /// Visits timers from where a walk stands on, as long as there is room, and moves it on. False
    /// if some were left out, because another walk has come in between.
    pub(crate) fn walk(
        &mut self,
        at: &mut At,
        mut room: usize,
        mut visit: impl FnMut(WheelRef, PendingIn),
    ) -> bool {
        let mut is_whole = true;
        while !at.is_over() {
            let mut next = match at.ticket {
                0 => self.front(at.list),
                ticket if ticket == self.cursor.ticket => self.cursor.before,
                _ => {
                    is_whole = false;
                    None
                }
            };
            while let Some(node) = next {
                if room == 0 {
                    at.ticket = self.cursor.stop(at.list, node);
                    self.is_walked = true;
                    return is_whole;
                }
                room -= 1;
                next = self.lists.after(node);
                let place = WheelPlace::of(node);
                let is_due = at.list >= DUE || place.expiry() <= self.clk;
                let place =
                    if is_due { PendingIn::Due } else { PendingIn::Level(place.level() as u8) };
                visit(node, place);
            }
            *at = At { list: at.list + 1, ticket: 0 };
        }
        is_whole
    }

    fn front(&self, list: usize) -> Option<WheelRef> {
        let is_empty = list < DUE && self.buckets[list / LANES].lanes >> (list % LANES) & 1 == 0;
        if is_empty { None } else { self.lists.front(list) }
    }
}
