//! Groups pending timers by owner, to find timers that should have been cancelled.

use super::timer_list::{ListedTimer, TimerList, relative};
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::fmt;
use std::panic::Location;
use tickless_core::time::Instant;

/// Pending timers, grouped by owner; from [`Timers::leaks`](crate::Timers::leaks).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leaks {
    /// The owners, by descending number of timers.
    pub leaks: Vec<Leak>,
    now: Instant,
}

/// Pending timers of one owner, armed at one place.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Leak {
    /// Their owner; see [`ListedTimer::label`].
    pub label: &'static str,
    /// Where they were armed, if that was recorded.
    pub armed_at: Option<&'static Location<'static>>,
    /// How many timers there are.
    pub count: usize,
    /// When the first of them is due.
    pub due: Instant,
}

impl Timers {
    /// Returns all pending timers, grouped by owner: for tests that check that no timer is left
    /// pending, and for programs whose [`Stats::pending`](crate::stats::Stats::pending) grows.
    ///
    /// Debug builds with [`Builder::note_armings`](crate::Builder::note_armings), and all debug
    /// builds under [`VirtualTime`], also report where each timer was armed. O(pending) in time and
    /// memory; locks each base for at most 64 timers at a time.
    ///
    /// [`VirtualTime`]: crate::VirtualTime
    pub fn leaks(&self) -> Leaks {
        Leaks::of(&self.shared)
    }
}

impl Leaks {
    fn of(shared: &Shared) -> Leaks {
        let list = TimerList::of(shared);
        let mut leaks: Vec<Leak> = Vec::new();
        for &ListedTimer { label, armed_at, due, .. } in &list.timers {
            let is_same = |leak: &&mut Leak| (leak.label, leak.armed_at) == (label, armed_at);
            match leaks.iter_mut().find(is_same) {
                Some(leak) => {
                    leak.count += 1;
                    leak.due = leak.due.min(due);
                }
                None => leaks.push(Leak { label, armed_at, count: 1, due }),
            }
        }
        leaks.sort_by_key(|leak| (std::cmp::Reverse(leak.count), leak.due));
        Leaks { leaks, now: list.now }
    }

    /// Returns `true` if no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.leaks.is_empty()
    }
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.leaks.iter().map(|leak| leak.count).sum();
        write!(f, "{count} timers pending")?;
        for leak in &self.leaks {
            write!(f, "\n{:>7} x {}", leak.count, leak.label)?;
            if let Some(at) = leak.armed_at {
                write!(f, ", armed at {at}")?;
            }
            write!(f, ", due {}", relative(leak.due, self.now))?;
        }
        Ok(())
    }
}
