//! Groups pending timers by owner, to find timers that should have been cancelled.

use super::timer_list::{ListedTimer, TimerList, relative};
use crate::timers::Timers;
use std::fmt;
use std::panic::Location;
use tickless_core::time::Instant;

/// Pending timers of one owner, armed at one place; from
/// [`Timers::leaks`](crate::Timers::leaks).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Leak {
    /// The owner of the timers; see [`ListedTimer::label`].
    pub label: &'static str,
    /// Where the timers were armed, if that was recorded.
    pub armed_at: Option<&'static Location<'static>>,
    /// How many timers there are.
    pub count: usize,
    /// When the first of the timers is due.
    pub due: Instant,
    now: Instant,
}

impl Timers {
    /// Returns all pending timers, grouped by owner, the owner with the most timers first: for
    /// tests that check that no timer is left pending, and for programs whose
    /// [`Stats::pending`](crate::stats::Stats::pending) grows. O(pending) in time and memory; locks
    /// each base for at most 64 timers at a time.
    ///
    /// Debug builds also report where each timer was armed, with
    /// [`Builder::note_armings`](crate::Builder::note_armings) or
    /// [`VirtualTime`](crate::VirtualTime).
    pub fn leaks(&self) -> Vec<Leak> {
        let list = TimerList::of(&self.shared);
        let mut leaks: Vec<Leak> = Vec::new();
        for &ListedTimer { label, armed_at, due, .. } in &list.timers {
            let is_same = |leak: &&mut Leak| (leak.label, leak.armed_at) == (label, armed_at);
            match leaks.iter_mut().find(is_same) {
                Some(leak) => {
                    leak.count += 1;
                    leak.due = leak.due.min(due);
                }
                None => leaks.push(Leak { label, armed_at, count: 1, due, now: list.now }),
            }
        }
        leaks.sort_by_key(|leak| (std::cmp::Reverse(leak.count), leak.due));
        leaks
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7} x {}", self.count, self.label)?;
        if let Some(at) = self.armed_at {
            write!(f, ", armed at {at}")?;
        }
        write!(f, ", due {}", relative(self.due, self.now))
    }
}
