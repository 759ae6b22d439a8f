//! A timer's place in the wheel: the level depends on the time to its deadline, the bucket on the
//! deadline, and the list within the bucket on the last bits of the deadline.

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
    /// A place for timers that are on no wheel: not deferrable, and due at tick 0.
    pub(crate) const NOWHERE: WheelPlace = WheelPlace(0);

    #[inline]
    pub(super) fn new(expiry: u64, level: usize, notes: u64) -> WheelPlace {
        WheelPlace(expiry << 5 | (level as u64) << 1 | notes)
    }

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

    /// Returns when the bucket of this place comes due.
    #[inline]
    pub(crate) fn due(self, tick: Tick) -> Ns {
        tick.start(self.expiry())
    }

    #[inline]
    pub(crate) fn wakes(self) -> Wakes {
        if self.is_deferrable() { Wakes::No } else { Wakes::Yes }
    }

    /// Returns the level and the deferrable bit, to be stored in the timer's state word.
    #[inline]
    pub(super) fn held(self) -> Held {
        Held::from_bits(self.0)
    }
}

impl Wheel {
    /// Returns the proper place and list for a deadline; `None` if the deadline has passed.
    #[inline(always)]
    pub(super) fn placement(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        let tick = self.tick.ceil(deadline);
        if tick <= self.clk {
            return None;
        }
        // Use the tick before the deadline: a bucket expires at the end of its granule, so a
        // deadline at that very tick belongs to the bucket.
        let (last, distance) = (tick - 1, tick - 1 - self.clk);
        if distance < REACH {
            return Some(on_level(last, level_of(distance), last, notes));
        }
        // Beyond the wheel's reach: the distance is clamped, and the timer is placed again when the
        // clamped distance has passed (D7).
        Some(on_level(self.clk + REACH - 1, LEVELS - 1, last, notes))
    }
}

/// Returns the finest level that is sure to reach a timer, wherever in its granule the clock is.
/// `between` is the number of ticks between the clock's tick and the timer's.
///
/// Level n holds timers at most 64 granules after the clock's granule; a distance of 63 granules
/// always fits. Adding one 32nd of the distance turns that limit into a power of two.
#[inline]
pub(crate) const fn level_of(between: u64) -> usize {
    let padded = (between + (between >> 5)) | 32;
    // The logarithm is 5 on level 0 and 3 more on each further level, so the level is the logarithm
    // minus 3, divided by 3 and rounded down. For numbers up to 63, multiplying by 43 and dividing
    // by 128 gives the same as dividing by 3.
    ((padded.ilog2() as usize - 3) * 43) >> 7
}

/// Returns the place on a level for a timer that expires after the tick `last`, and its list. The
/// list depends on the last tick before the deadline, even if `last` has been clamped.
#[inline]
fn on_level(last: u64, level: usize, last_of_deadline: u64, notes: u64) -> (WheelPlace, usize) {
    let granule = 3 * level as u32;
    let granules = (last >> granule) + 1;
    let slot = granules as usize % SLOTS;
    let list = (level * SLOTS + slot) * LANES + lane(last_of_deadline, level);
    (WheelPlace::new(granules << granule, level, notes), list)
}

/// Returns the eighth of its granule in which a deadline is. Equal deadlines are in the same
/// eighth, so they keep their order (W4). On level 0 this is always 0.
#[inline]
pub(super) fn lane(last: u64, level: usize) -> usize {
    (last << 3 >> (3 * level)) as usize % LANES
}
