//! Keys of timers: each has a timer's kind, slot and generation in one word.

use super::table::{STATE_BITS, SlotKey};
use core::fmt;

/// Identifies a timer of one [`LocalTimers`](super::LocalTimers). After the timer has been removed,
/// its key finds no timer. A key is 64 bits long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(
    /// The low half is the slot's generation, whose lowest bits are zero, the high half its number,
    /// plus [`PRECISE`] for a precise timer. One integer, because a function returns an integer in
    /// a register.
    u64,
);

/// This bit is set in the high half of a precise timer's key. The numbers of slots are smaller.
const PRECISE: u32 = 1 << 31;

impl Key {
    /// The key of no timer: no slot has generation 0.
    pub(super) const NONE: Key = Key(0);

    #[inline]
    pub(super) fn of_coarse(slot: SlotKey) -> Key {
        Key(u64::from(slot.index) << 32 | u64::from(slot.generation))
    }

    #[inline]
    pub(super) fn of_precise(slot: SlotKey) -> Key {
        Key(u64::from(slot.index | PRECISE) << 32 | u64::from(slot.generation))
    }

    /// Returns the key as a number other than 0, for callers that cannot store a [`Key`].
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the key from which [`to_bits`](Key::to_bits) made this number. A key that is made
    /// from any other number finds no timer, or an arbitrary one.
    #[inline]
    pub fn from_bits(bits: u64) -> Key {
        Key(bits >> STATE_BITS << STATE_BITS)
    }

    #[inline]
    pub(super) fn is_precise(self) -> bool {
        (self.0 >> 32) as u32 & PRECISE != 0
    }

    /// Returns the slot among the coarse timers; its index is out of range for a precise key.
    #[inline]
    pub(super) fn coarse(self) -> SlotKey {
        SlotKey { index: (self.0 >> 32) as u32, generation: self.0 as u32 }
    }

    /// Returns the slot among the precise timers; its index is out of range for a coarse key.
    #[inline]
    pub(super) fn precise(self) -> SlotKey {
        SlotKey { index: (self.0 >> 32) as u32 ^ PRECISE, generation: self.0 as u32 }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_precise() { "Precise" } else { "Coarse" };
        let (index, generation) = ((self.0 >> 32) as u32 & !PRECISE, self.0 as u32 >> STATE_BITS);
        write!(f, "{kind}#{index}.{generation}")
    }
}
