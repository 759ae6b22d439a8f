//! A timer's place in the wheel, packed into the word that its node has for it.

use super::SLOTS;
use crate::link::WheelRef;

/// Where a timer belongs: its effective expiry in ticks, its level, and notes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub(super) u64);

pub(super) const DEFERRABLE: u64 = 1;
/// On an earlier list than the one it is counted in.
pub(super) const MOVED: u64 = 2;
/// The deadline lies beyond what the effective expiry says.
pub(super) const CLAMPED: u64 = 4;

impl Place {
    pub(super) fn new(expiry: u64, level: usize, notes: u64) -> Place {
        Place(expiry << 7 | (level as u64) << 3 | notes)
    }

    pub(super) fn of(node: WheelRef) -> Place {
        Place(node.place())
    }

    pub(super) fn expiry(self) -> u64 {
        self.0 >> 7
    }

    pub(super) fn level(self) -> usize {
        (self.0 >> 3 & 15) as usize
    }

    pub(super) fn has(self, notes: u64) -> bool {
        self.0 & notes != 0
    }

    pub(super) fn slot(self) -> u64 {
        self.expiry() >> (3 * self.level()) & (SLOTS as u64 - 1)
    }

    pub(super) fn bucket(self) -> usize {
        self.level() * SLOTS + self.slot() as usize
    }

    /// Equal but for the notes.
    pub(super) fn same_bucket(self, other: Place) -> bool {
        self.0 >> 3 == other.0 >> 3
    }
}
