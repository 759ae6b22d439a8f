//! The clock of one thread's timers.

use crate::time::{Instant, Ns};

/// Tells the timers of one thread from which time a duration counts.
///
/// Every `start`, `sleep`, `timeout` and `reset` with a duration reads a clock made by [`new`]: the
/// timer is never early, however long the caller has worked since the last advance. A clock made
/// by [`manual`] is never read, which saves the reading: a duration counts from the last advance.
///
/// [`new`]: Clock::new
/// [`manual`]: Clock::manual
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    read: Option<fn() -> Instant>,
    /// The time of the last advance.
    pub(super) advanced: Ns,
}

impl Clock {
    /// Returns a clock that `read` reads. Pass times of the same clock to `advance`. With the crate
    /// `tickless`, `tickless::local::system_clock` is this clock for the system's.
    pub fn new(read: fn() -> Instant) -> Clock {
        Clock { read: Some(read), advanced: read().to_ns() }
    }

    /// Returns a clock that only `advance` moves, and that begins at `now`: for a loop with a time
    /// of its own, such as a simulation, and for one that handles a batch of events at one time.
    /// **A duration that is given late in a long turn of the loop ends early by what the turn has
    /// taken so far.** Such a caller gives deadlines instead, or advances first.
    pub const fn manual(now: Instant) -> Clock {
        Clock { read: None, advanced: now.to_ns() }
    }

    /// Returns whether durations count from a reading. Those who ask read it in a function of its
    /// own: a call here would make callers without a clock save registers, 15 instructions each.
    #[inline(always)]
    pub(super) fn is_read(&self) -> bool {
        self.read.is_some()
    }

    /// Returns the time from which durations count.
    #[inline]
    pub(super) fn now(&self) -> Ns {
        self.read.map_or(self.advanced, |read| read().to_ns().max(self.advanced))
    }

    /// Sets the time of the last advance, unless that was later.
    #[inline]
    pub(super) fn advance(&mut self, now: Ns) {
        self.advanced = self.advanced.max(now);
    }
}
