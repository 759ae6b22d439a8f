//! A clock for virtual time, which the program moves forwards. Reading it takes no lock.

use crate::platform::time_base::Steps;
use core::sync::atomic::{AtomicU64, Ordering};
use tickless_core::time::Ns;

/// A clock that the program moves. Any thread can read it. Only one thread at a time moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicU64,
    /// How far the program has moved boottime and realtime against this clock.
    pub steps: Steps,
}

impl ManualClock {
    pub fn at(now: Ns) -> ManualClock {
        ManualClock { now: AtomicU64::new(now.0), steps: Steps::of_virtual_time() }
    }

    #[inline]
    pub fn now(&self) -> Ns {
        // Acquire: a thread that sees the new time also sees the program's writes before the move.
        Ns(self.now.load(Ordering::Acquire))
    }

    /// Moves the clock forwards to a time. An earlier time than the current one is ignored.
    pub fn set(&self, to: Ns) {
        if to.0 > self.now.load(Ordering::Relaxed) {
            // Not an exchange, which takes as long as twenty instructions: one thread moves it.
            self.now.store(to.0, Ordering::Release);
        }
    }
}
