//! Being told when the time of day is set, or the system was suspended.
//!
//! The kernel tells who has a timerfd on `CLOCK_REALTIME` that is to be cancelled when that clock
//! is set; a suspend sets it too. One thread waits for that, from when the first timer on such
//! a clock is made. Where it cannot be had, or there are to be no threads, those timers look at
//! their clock once a second instead.

use crate::platform::device::fallback::RefusedCall;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tickless_core::time::Ns;

/// How timers learn that their clock was set.
#[derive(Debug, Default)]
pub struct ClockWatch {
    notice: Mutex<Option<Notice>>,
    /// Why nobody tells, if that was not the program's wish.
    refused: OnceLock<RefusedCall>,
    steps: AtomicU64,
}

/// Who tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Whoever moves the clocks: in virtual time.
    Hand,
    /// The kernel.
    #[cfg(any(linux_platform, test))]
    Kernel,
    /// Nobody: look for yourself, this often.
    Nobody,
}

/// How often timers look at their clock when nobody tells them.
pub const LOOK: Ns = Ns::from_secs(1);

impl ClockWatch {
    /// Who tells, as `begin` finds out the first time.
    pub fn notice(&self, begin: impl FnOnce() -> Result<Notice, RefusedCall>) -> Notice {
        *self.lock().get_or_insert_with(|| begin().unwrap_or_else(|why| self.refuse(why)))
    }

    /// Do timers have to look for themselves?
    pub fn is_blind(&self) -> bool {
        *self.lock() == Some(Notice::Nobody)
    }

    /// From now on nobody tells.
    #[cfg(any(linux_platform, test))]
    pub fn end(&self, why: RefusedCall) {
        *self.lock() = Some(self.refuse(why));
    }

    fn refuse(&self, why: RefusedCall) -> Notice {
        self.refused.get_or_init(|| why);
        Notice::Nobody
    }

    /// Why nobody tells.
    pub fn refused(&self) -> Option<RefusedCall> {
        self.refused.get().copied()
    }

    /// Somebody has told.
    pub fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// How often somebody has told.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Notice>> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: why nobody tells is said once, and stays.
    #[test]
    fn refusals_are_kept() {
        let watch = ClockWatch::default();
        let why = |call| RefusedCall { call, errno: 1 };
        assert!(!watch.is_blind());
        assert_eq!(watch.notice(|| Ok(Notice::Kernel)), Notice::Kernel);
        assert_eq!(watch.notice(|| Err(why("not asked again"))), Notice::Kernel);
        assert_eq!(watch.refused(), None);
        watch.end(why("poll"));
        watch.end(why("later"));
        assert!(watch.is_blind());
        assert_eq!(watch.refused(), Some(why("poll")));
    }
}
