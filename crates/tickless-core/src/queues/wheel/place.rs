//! A timer's place in the wheel, packed into the word that its node has for it.

use super::SLOTS;
use crate::link::WheelRef;
use crate::state::Held;

/// Where a timer is: when its bucket comes due, in ticks, its level, and whether it is deferrable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WheelPlace(pub(super) u64);

pub(super) const DEFERRABLE: u64 = 1;

impl WheelPlace {
    #[inline]
    pub(super) fn new(expiry: u64, level: usize, notes: u64) -> WheelPlace {
        WheelPlace(expiry << 5 | (level as u64) << 1 | notes)
    }

    /// The same timer on the same level, but due at this tick.
    pub(super) fn due_at(self, tick: u64) -> WheelPlace {
        WheelPlace(tick << 5 | self.0 & 31)
    }

    #[inline]
    pub(super) fn of(node: WheelRef) -> WheelPlace {
        WheelPlace(node.place())
    }

    #[inline]
    pub(super) fn expiry(self) -> u64 {
        self.0 >> 5
    }

    #[inline]
    pub(super) fn level(self) -> usize {
        (self.0 >> 1 & 15) as usize
    }

    #[inline]
    pub(super) fn is_deferrable(self) -> bool {
        self.0 & DEFERRABLE != 0
    }

    #[inline]
    pub(super) fn slot(self) -> u64 {
        self.expiry() >> (3 * self.level()) & (SLOTS as u64 - 1)
    }

    #[inline]
    pub(super) fn bucket(self) -> usize {
        self.level() * SLOTS + self.slot() as usize
    }

    /// For the timer's word.
    #[inline]
    pub(super) fn held(self) -> Held {
        Held::from_bits(self.0)
    }
}
