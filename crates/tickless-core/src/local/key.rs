//! Keys: which timer of which family, in one word.

use super::table::STATE_BITS;
use crate::link::{QueueLink, Slab, SlotKey};
use core::fmt;

/// Names a timer of one [`LocalTimers`](super::LocalTimers). Once the timer has been removed the
/// key finds nothing. One word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(
    /// The slot's generation, as its table has it, and in the low half its number and, for a
    /// precise timer, [`PRECISE`]. One number, so that a result with a key in it is returned in
    /// registers.
    u64,
);

/// Slots have numbers below this: with it, a number is no coarse timer's.
const PRECISE: u32 = Slab::<QueueLink, ()>::SLOTS_MAX;
/// Where a key has the generation.
const GENERATIONS: u64 = !(u32::MAX as u64);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Family {
    Coarse,
    Precise,
}

impl Key {
    /// No slot has generation 0.
    pub(super) const NOBODY: Key = Key(0);

    #[inline]
    pub(super) fn new(slot: SlotKey, family: Family) -> Key {
        let family = match family {
            Family::Coarse => 0,
            Family::Precise => PRECISE,
        };
        Key(u64::from(slot.generation) << 32 | u64::from(slot.index | family))
    }

    /// The key as one number, for callers that can store nothing else. Never 0.
    #[inline]
    pub fn to_bits(self) -> u64 {
        match self.family() {
            Family::Coarse => self.0 >> STATE_BITS & GENERATIONS | u64::from(self.0 as u32),
            Family::Precise => self.0,
        }
    }

    /// The key that this number came from. Any other number names nothing, or another timer.
    #[inline]
    pub fn from_bits(bits: u64) -> Key {
        match Key(bits).family() {
            Family::Coarse if bits >> (64 - STATE_BITS) == 0 => {
                Key((bits & GENERATIONS) << STATE_BITS | u64::from(bits as u32))
            }
            Family::Coarse => Key::NOBODY,
            Family::Precise => Key(bits),
        }
    }

    #[inline]
    pub(super) fn family(self) -> Family {
        if self.0 as u32 & PRECISE == 0 { Family::Coarse } else { Family::Precise }
    }

    /// The slot that it names among the precise timers.
    #[inline]
    pub(super) fn precise(self) -> SlotKey {
        SlotKey { index: self.0 as u32 & !PRECISE, generation: (self.0 >> 32) as u32 }
    }

    /// The slot that it names among the coarse timers: none, if it is a precise one's.
    #[inline]
    pub(super) fn coarse(self) -> SlotKey {
        SlotKey { index: self.0 as u32, generation: (self.0 >> 32) as u32 }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlotKey { index, generation } = self.precise();
        write!(f, "{:?}#{index}.{generation}", self.family())
    }
}
