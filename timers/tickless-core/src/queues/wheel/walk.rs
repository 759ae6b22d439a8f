//! Counts the timers on each level, and visits all timers in several steps: a walk.

use super::place::WheelPlace;
use super::{DUE, LANES, LEVELS, OVERDUE, SLOTS, Wheel};
use crate::link::WheelRef;
use crate::state::PendingIn;

const LISTS: usize = OVERDUE + 1;

/// The number of timers on each level of a wheel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    /// The number on each level, without deferrable timers.
    pub levels: [usize; LEVELS],
    /// Timers that are due and have not fired.
    pub due: usize,
    /// Deferrable timers, on any level.
    pub deferrable: usize,
}

impl Levels {
    /// Returns the number of all these timers.
    pub fn total(&self) -> usize {
        self.levels.iter().sum::<usize>() + self.due + self.deferrable
    }
}

/// The position of a walk over all timers: before the list `list`, or within it if `ticket` is not
/// 0. Within a list, the walk continues with the timer that the wheel's `Cursor` stores.
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

/// Where the last walk stopped within a list. Removing the timer at this position moves the
/// position to the next one, so that it never refers to a removed timer.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The next timer that the walk visits; `None` at the end of the list that it walks, or if this
    /// list has been moved to the due list.
    before: Option<WheelRef>,
    list: usize,
    /// Identifies the walk that stopped here. A walk with another ticket has lost its position.
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

    /// Moves the position to `next`, which comes after the timer that is about to be removed.
    #[cold]
    pub(super) fn go_on_to(&mut self, next: Option<WheelRef>) {
        self.before = next;
    }

    /// If the walk stopped in this list, makes it go on with the next list. Called when the list's
    /// timers move to the due list, or are sorted.
    #[inline]
    pub(super) fn leave_list(&mut self, list: usize) {
        if self.list == list {
            self.before = None;
        }
    }
}

impl Wheel {
    /// Returns the number of timers on each level. Reads one count for each of at most 576 buckets.
    pub fn by_level(&self) -> Levels {
        let (due, deferrable) = (self.due_live, self.deferrable);
        let mut found = Levels { due, deferrable, ..Levels::default() };
        for (level, count) in found.levels.iter_mut().enumerate() {
            let mut live = self.levels[level].live;
            while live != 0 {
                *count +=
                    self.buckets()[level * SLOTS + live.trailing_zeros() as usize].count as usize;
                live &= live - 1;
            }
        }
        found
    }

    /// Continues a walk from the position `at`, for at most `room` timers, and updates `at`.
    /// Returns false if timers of a list were skipped, because another walk has stopped since and
    /// the wheel remembers only one position.
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
        let is_empty = list < DUE && self.buckets()[list / LANES].lanes >> (list % LANES) & 1 == 0;
        if is_empty { None } else { self.lists.front(list) }
    }
}
