//! Reads timers some time before they are popped, so that they are in the cache by then.

use super::{LANES, WheelLists};
use crate::link::WheelRef;

/// Reads timers that will be popped soon, at several places of the due list at once.
///
/// The time to expire a million timers is mostly cache misses, since each timer has to be read to
/// find the next. A bucket has several lists, each of which becomes a part of the due list. While
/// the first part is popped, a *walker* for each other part reads that part's timers, one for each
/// pop: their cache misses overlap. Pops never reach a walker, because it moves on as well; any
/// other removal of a timer stops all walkers, so that none refers to a removed timer.
#[derive(Debug, Default)]
pub(super) struct RunAhead {
    walkers: [Option<Walker>; LANES],
    count: usize,
}

/// A reader of one part of the due list: the timers that came from one list of a bucket.
#[derive(Clone, Copy, Debug)]
struct Walker {
    at: WheelRef,
    /// The last timer to read. Compared and never dereferenced.
    last: WheelRef,
}

impl RunAhead {
    /// Buckets with fewer timers than this are not read ahead, because that would gain too little.
    pub(super) const WORTHWHILE: u32 = 256;

    /// Adds a walker for a list that is about to be appended to the due list. Does nothing if the
    /// due list is empty (not `is_behind`): this list is then popped before it could be read ahead.
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(super) fn add(&mut self, ends: Option<(WheelRef, WheelRef)>, is_behind: bool) {
        let Some((at, last)) = ends else { return };
        if is_behind && self.count < LANES {
            self.walkers[self.count] = Some(Walker { at, last });
            self.count += 1;
        }
    }

    /// Moves each walker (a reader of one part of the due list) on by one timer. Called once for
    /// each timer that is popped. Returns how many timers were read, at most [`LANES`].
    #[inline]
    pub(super) fn step(&mut self, lists: &WheelLists) -> usize {
        if self.count == 0 { 0 } else { self.walk(lists) }
    }

    /// Not inlined, because few buckets have enough timers for reading ahead.
    #[inline(never)]
    fn walk(&mut self, lists: &WheelLists) -> usize {
        let mut looks = 0;
        for walker in self.walkers.iter_mut().take(self.count).flatten() {
            if walker.at == walker.last {
                continue;
            }
            if let Some(next) = lists.after(walker.at) {
                walker.at = next;
                looks += 1;
            }
        }
        if looks == 0 {
            // All walkers are at the ends of their lists.
            self.stop();
        }
        looks
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.count = 0;
    }
}
