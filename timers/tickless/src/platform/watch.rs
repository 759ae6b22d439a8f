//! How timers learn that the wall clock was set, or that the system was suspended.
//!
//! The kernel reports both by cancelling a timerfd on `CLOCK_REALTIME`, for which a thread waits.
//! If the timerfd or the thread cannot be created, or an event loop drives the timers, the timers
//! check their clock once a second.

use crate::platform::device::refused::RefusedCall;
use crate::platform::locked::locked;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use tickless_core::time::Ns;

#[derive(Debug, Default)]
pub struct ClockWatch {
    source: Mutex<Option<StepSource>>,
    /// The system call whose refusal makes timers poll their clock. Empty if they poll for another
    /// reason, or do not poll.
    refused: OnceLock<RefusedCall>,
    steps: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepSource {
    /// The program, which moves the clocks of virtual time itself.
    Program,
    #[cfg(any(linux_platform, test))]
    Kernel,
    /// Nothing: timers check their clock every [`POLL_EVERY`].
    Polling,
}

pub const POLL_EVERY: Ns = Ns::from_secs(1);

impl ClockWatch {
    /// Returns what reports that a clock was set. The first call starts the reports by `begin`; if
    /// the system refuses that, timers poll their clock.
    pub fn source(&self, begin: impl FnOnce() -> Result<StepSource, RefusedCall>) -> StepSource {
        *locked(&self.source).get_or_insert_with(|| begin().unwrap_or_else(|why| self.refuse(why)))
    }

    pub fn polls(&self) -> bool {
        *locked(&self.source) == Some(StepSource::Polling)
    }

    /// Makes timers poll their clock from here on, because the system refused a call.
    #[cfg(any(linux_platform, test))]
    pub fn fall_back(&self, why: RefusedCall) {
        *locked(&self.source) = Some(self.refuse(why));
    }

    fn refuse(&self, why: RefusedCall) -> StepSource {
        self.refused.get_or_init(|| why);
        StepSource::Polling
    }

    pub fn refused(&self) -> Option<RefusedCall> {
        self.refused.get().copied()
    }

    pub fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_kept() {
        let watch = ClockWatch::default();
        let why = |call| RefusedCall { call, errno: 1 };
        assert!(!watch.polls());
        assert_eq!(watch.source(|| Ok(StepSource::Kernel)), StepSource::Kernel);
        assert_eq!(watch.source(|| Err(why("not called again"))), StepSource::Kernel);
        assert_eq!(watch.refused(), None);
        watch.fall_back(why("poll"));
        watch.fall_back(why("later"));
        assert!(watch.polls());
        assert_eq!(watch.refused(), Some(why("poll")));
    }
}
