//! Walking what is soon to be popped, so that it is in the cache by then.

use super::{LANES, WheelLists};
use crate::link::WheelRef;

/// Looks at timers that are soon to be popped, in several places of the due list at once.
///
/// Expiring a million timers is waiting for memory: each has to be read to find the next. A
/// bucket has several lists, and while the first of them is popped, the others are walked, one
/// step each for every pop: their cache misses overlap, and what has been walked is in the
/// cache when its turn comes. Every step keeps the distance to what is popped, so no walker
/// ever stands on a timer that is gone; anything else that takes a timer off a list stops them.
#[derive(Debug, Default)]
pub(super) struct RunAhead {
    walkers: [Option<Walker>; LANES],
    count: usize,
}

/// Walks one list. Beyond its end is what another walker has seen.
#[derive(Clone, Copy, Debug)]
struct Walker {
    at: WheelRef,
    /// Compared and never followed.
    last: WheelRef,
}

impl RunAhead {
    /// Buckets with fewer timers than this are in the cache before walking them has begun.
    pub(super) const WORTHWHILE: u32 = 256;

    /// A list is about to go to the end of the due list. Walks it, if something lies before it.
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(super) fn add(&mut self, ends: Option<(WheelRef, WheelRef)>, is_behind: bool) {
        if let Some((at, last)) = ends
            && is_behind
            && self.count < LANES
        {
            self.walkers[self.count] = Some(Walker { at, last });
            self.count += 1;
        }
    }

    /// One timer is about to be popped. Returns how many others were looked at, at most [`LANES`].
    #[inline]
    pub(super) fn step(&mut self, lists: &WheelLists) -> usize {
        if self.count == 0 { 0 } else { self.walk(lists) }
    }

    /// Apart: few buckets are worth walking.
    #[inline(never)]
    fn walk(&mut self, lists: &WheelLists) -> usize {
        let mut looks = 0;
        for walker in self.walkers.iter_mut().take(self.count).flatten() {
            if walker.at != walker.last
                && let Some(next) = lists.after(walker.at)
            {
                walker.at = next;
                looks += 1;
            }
        }
        if looks == 0 {
            // All are at the ends of their lists.
            self.stop();
        }
        looks
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.count = 0;
    }
}
