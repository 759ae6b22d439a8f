//! Where a timer goes in the wheel: the level by its distance, the bucket by its deadline, and the
//! list within the bucket. All three are packed into the one word that its node has for them.

use super::{LANES, LEVELS, REACH, SLOTS, Wakes, Wheel};
use crate::link::WheelRef;
use crate::state::Held;
use crate::time::{Ns, Tick};

/// Where a timer is: when its bucket comes due, in ticks, its level, and whether it is deferrable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WheelPlace(pub(super) u64);

pub(super) const DEFERRABLE: u64 = 1;

impl WheelPlace {
    /// Of a timer that is on no wheel: it wakes somebody, and no bucket delays it.
    pub(crate) const NOWHERE: WheelPlace = WheelPlace(0);

    #[inline]
    pub(super) fn new(expiry: u64, level: usize, notes: u64) -> WheelPlace {
        WheelPlace(expiry << 5 | (level as u64) << 1 | notes)
    }

    /// The same timer on the same level, but due at this tick.
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

    /// When its bucket comes due.
    #[inline]
    pub(crate) fn due(self, tick: Tick) -> Ns {
        tick.start(self.expiry())
    }

    #[inline]
    pub(crate) fn wakes(self) -> Wakes {
        if self.is_deferrable() { Wakes::No } else { Wakes::Yes }
    }

    /// For the timer's word.
    #[inline]
    pub(super) fn held(self) -> Held {
        Held::from_bits(self.0)
    }
}

impl Wheel {
    /// Where a timer with this deadline belongs, seen from the present, and on which list of a
    /// bucket; `None` if it has passed.
    #[inline(always)]
    pub(super) fn placement(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        let tick = self.tick.ceil(deadline);
        if tick <= self.clk {
            return None;
        }
        // Counted from the tick before it: a granule ends with the expiry of its bucket.
        let (last, distance) = (tick - 1, tick - 1 - self.clk);
        if distance < REACH {
            return Some(on_level(last, level_of(distance), last, notes));
        }
        // To be moved on when that has passed: D7.
        Some(on_level(self.clk + REACH - 1, LEVELS - 1, last, notes))
    }
}

/// The finest level that reaches a timer at any alignment of the clock, `between` ticks lying
/// between the clock's and the timer's.
///
/// Level n holds what lies at most 64 granules after the granule that the clock is in; a
/// distance of 63 granules always does. Adding a 32nd lets a power of two stand for that.
#[inline]
pub(crate) const fn level_of(between: u64) -> usize {
    let padded = (between + (between >> 5)) | 32;
    // From 5 for level 0, three more for each level; 43 / 128 is a third up to 63.
    ((padded.ilog2() as usize - 3) * 43) >> 7
}

/// A place on a level for what is to expire after the tick `last`, and its list there, by the
/// last tick before its deadline.
#[inline]
fn on_level(last: u64, level: usize, last_of_deadline: u64, notes: u64) -> (WheelPlace, usize) {
    let granule = 3 * level as u32;
    let granules = (last >> granule) + 1;
    let slot = granules as usize % SLOTS;
    let list = (level * SLOTS + slot) * LANES + lane(last_of_deadline, level);
    (WheelPlace::new(granules << granule, level, notes), list)
}

/// Which eighth of its granule a deadline lies in. Equal deadlines are in one (W4); on level 0
/// there is one only.
#[inline]
pub(super) fn lane(last: u64, level: usize) -> usize {
    (last << 3 >> (3 * level)) as usize % LANES
}
