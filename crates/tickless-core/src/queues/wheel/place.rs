//! A timer's place in the wheel: the level depends on its distance, the bucket on its deadline, and
//! the list within the bucket on the last bits of the deadline.

use super::{LANES, LEVELS, REACH, SLOTS, Wakes, Wheel};
use crate::link::WheelRef;
use crate::state::Held;
use crate::time::{Ns, Tick};

/// A timer's place, packed into one word of its node: the tick at which its bucket comes due, its
/// level, and whether it is deferrable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WheelPlace(pub(super) u64);

pub(super) const DEFERRABLE: u64 = 1;

impl WheelPlace {
    /// The place of a timer that is on no wheel: not deferrable, and due at once.
    pub(crate) const NOWHERE: WheelPlace = WheelPlace(0);

    #[inline]
    pub(super) fn new(expiry: u64, level: usize, notes: u64) -> WheelPlace {
        WheelPlace(expiry << 5 | (level as u64) << 1 | notes)
    }

    /// Returns the place with another tick.
    pub(super) fn due_at(self, tick: u64) -> WheelPlace {
        WheelPlace(tick << 5 | self.0 & 31)
    }

    #[inline]
    pub(crate) fn of(node: WheelRef) -> WheelPlace {
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

    /// Returns when its bucket comes due.
    #[inline]
    pub(crate) fn due(self, tick: Tick) -> Ns {
        tick.start(self.expiry())
    }

    #[inline]
    pub(crate) fn wakes(self) -> Wakes {
        if self.is_deferrable() { Wakes::No } else { Wakes::Yes }
    }

    /// Returns the level and the deferrable bit, for the timer's word.
    #[inline]
    pub(super) fn held(self) -> Held {
        Held::from_bits(self.0)
    }
}

impl Wheel {
    /// Returns the proper place and list for a deadline; `None` if it has passed.
    #[inline(always)]
    pub(super) fn placement(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        let tick = self.tick.ceil(deadline);
        if tick <= self.clk {
            return None;
        }
        // Counted from the tick before: a granule ends when its bucket expires.
        let (last, distance) = (tick - 1, tick - 1 - self.clk);
        if distance < REACH {
            return Some(on_level(last, level_of(distance), last, notes));
        }
        // The distance is clamped; the timer is placed again after that (D7).
        Some(on_level(self.clk + REACH - 1, LEVELS - 1, last, notes))
    }
}

/// Returns the finest level that reaches a timer at any alignment of the clock, with `between`
/// ticks between the clock's tick and the timer's.
///
/// Level n holds timers at most 64 granules after the clock's granule; a distance of 63 granules
/// always fits. Adding a 32nd turns that limit into a power of two.
#[inline]
pub(crate) const fn level_of(between: u64) -> usize {
    let padded = (between + (between >> 5)) | 32;
    // The logarithm is 5 on level 0 and 3 more on each level; 43 / 128 divides by 3 up to 63.
    ((padded.ilog2() as usize - 3) * 43) >> 7
}

/// Returns the place on a level for a timer that expires after the tick `last`, and its list, which
/// depends on the last tick before its deadline.
#[inline]
fn on_level(last: u64, level: usize, last_of_deadline: u64, notes: u64) -> (WheelPlace, usize) {
    let granule = 3 * level as u32;
    let granules = (last >> granule) + 1;
    let slot = granules as usize % SLOTS;
    let list = (level * SLOTS + slot) * LANES + lane(last_of_deadline, level);
    (WheelPlace::new(granules << granule, level, notes), list)
}

/// Returns the eighth of its granule in which a deadline is. Equal deadlines are in the same one
/// (W4); on level 0 there is only one.
#[inline]
pub(super) fn lane(last: u64, level: usize) -> usize {
    (last << 3 >> (3 * level)) as usize % LANES
}
