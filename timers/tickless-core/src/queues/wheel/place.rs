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
    pub(crate) fn held(self) -> Held {
        Held::from_bits(self.0)
    }
}

impl Wheel {
    /// Returns the proper place and list for a deadline; `None` if the deadline has passed.
    #[inline(always)]
    pub(super) fn placement(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        self.near(deadline, notes).or_else(|| self.far(deadline, notes))
    }

    /// Does the same for a usual deadline: one within the wheel's reach, that has not passed.
    #[inline(always)]
    pub(super) fn near(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        // Use the tick before the deadline: a bucket expires at the end of its granule, so a
        // deadline at that very tick belongs to the bucket.
        // One comparison finds late times, which are not divided by multiplying, and 0.
        let before = Ns(deadline.0.wrapping_sub(1));
        if before.0 > i64::MAX as u64 {
            return None;
        }
        let last = self.tick.floor(before);
        // One comparison: if the deadline has passed, the distance wraps.
        let distance = last.wrapping_sub(self.clk);
        if distance >= REACH {
            return None;
        }
        let level = level_of(distance);
        Some(on_level((last * LANES as u64) >> (3 * level), level, notes))
    }

    #[cold]
    #[inline(never)]
    fn far(&self, deadline: Ns, notes: u64) -> Option<(WheelPlace, usize)> {
        let tick = self.tick.ceil(deadline);
        if tick <= self.clk {
            return None;
        }
        let last = tick - 1;
        let (level, clamped) = match last - self.clk {
            distance if distance < REACH => (level_of(distance), last),
            // Beyond the wheel's reach the distance is clamped, and the timer is placed again when
            // the clamped distance has passed (D7). The list still depends on the deadline.
            _ => (LEVELS - 1, self.clk + REACH - 1),
        };
        let granules = clamped >> (3 * level);
        Some(on_level(granules * LANES as u64 + lane(last, level) as u64, level, notes))
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

/// Returns the place on a level, and the list, for a timer whose last tick before the deadline is
/// in this eighth of a granule, counted from the beginning of the clock.
#[inline(always)]
fn on_level(eighth: u64, level: usize, notes: u64) -> (WheelPlace, usize) {
    // The bucket comes due with the next granule.
    let next = eighth + LANES as u64;
    let list = level * SLOTS * LANES + next as usize % (SLOTS * LANES);
    (WheelPlace::new((next / LANES as u64) << (3 * level), level, notes), list)
}

/// Returns the eighth of its granule in which a deadline is. Equal deadlines are in the same
/// eighth, so they keep their order (W4). On level 0 this is always 0.
#[inline]
pub(super) fn lane(last: u64, level: usize) -> usize {
    (last << 3 >> (3 * level)) as usize % LANES
}
