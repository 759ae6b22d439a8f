//! Walking what is soon to be popped, so that it is in the cache by then.

use super::LANES;
use crate::link::{Lists, WheelRef};

/// Looks at timers that are soon to be popped, in several places of the due list at once.
///
/// Expiring a million timers is waiting for memory: each has to be read to find the next. A
/// bucket has several lists, and while the first of them is popped, the others are walked, one
/// step each for every pop: their cache misses overlap, and what has been walked is in the
/// cache when its turn comes. Every step keeps the distance to what is popped, so no walker
/// ever stands on a timer that is gone; anything else that takes a timer off a list stops them.
#[derive(Debug, Default)]
pub(super) struct RunAhead {
    walkers: [Option<WheelRef>; LANES],
    count: usize,
}

impl RunAhead {
    /// Buckets with fewer timers than this are in the cache before walking them has begun.
    pub(super) const WORTHWHILE: u32 = 256;

    /// A list is about to go to the end of the due list. Walks it, if something lies before it.
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(super) fn add(&mut self, first: Option<WheelRef>, is_behind: bool) {
        if is_behind && self.count < LANES {
            self.walkers[self.count] = first;
            self.count += 1;
        }
    }

    /// How many timers are looked at for each that is popped.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One timer is about to be popped.
    #[inline]
    pub(super) fn step(&mut self, lists: &Lists) {
        for walker in &mut self.walkers[..self.count] {
            *walker = walker.and_then(|node| lists.after(node));
        }
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.count = 0;
    }
}
