//! Counts that the bases do not keep: cancels of timers that were not pending, expiries that came
//! too late, and, on request, how long callbacks take.

use crate::platform::locked::locked;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::time::{CpuId, Ns};

/// How long the callbacks of a base took, on the clock of its timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct CallbackTimes {
    /// Callbacks that have ended, panics included.
    pub count: u64,
    /// The time that all callbacks took together.
    pub total: Duration,
    /// The time of the longest.
    pub longest: Duration,
    /// The label of the longest.
    pub longest_of: &'static str,
    /// How many took longer than [`Builder::slow_after`](crate::Builder::slow_after).
    pub slow: u64,
}

impl CallbackTimes {
    /// Adds the times of two bases. The longest callback is the longer one of their two.
    #[must_use]
    pub fn plus(self, other: CallbackTimes) -> CallbackTimes {
        let longest = if other.longest > self.longest { other } else { self };
        CallbackTimes {
            count: self.count + other.count,
            total: self.total + other.total,
            slow: self.slow + other.slow,
            ..longest
        }
    }
}

#[derive(Debug)]
pub(crate) struct Counters {
    bases: Box<[OfBase]>,
    pub(crate) times: bool,
    pub(crate) slow_after: Ns,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct OfBase {
    idle: AtomicU64,
    running: AtomicU64,
    overdue: AtomicU64,
    callbacks: Mutex<CallbackTimes>,
}

impl Counters {
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(crate) fn new(bases: u16, times: bool, slow_after: Ns) -> Counters {
        Counters { bases: (0..bases).map(|_| OfBase::default()).collect(), times, slow_after }
    }

    /// Counts a cancel that found its timer in the state `found`, for the base of the caller's CPU.
    #[inline]
    pub(crate) fn count_cancel(&self, here: CpuId, found: Cancel) {
        let Some(base) = self.bases.get(here.index()) else { return };
        match found {
            Cancel::Pending => {}
            // Not an atomic addition, because a cancel of an idle timer must stay cheap. A count is
            // lost if two threads cancel for one base at the same moment.
            Cancel::Idle => base.idle.store(base.idle.load(RELAXED) + 1, RELAXED),
            Cancel::Running => _ = base.running.fetch_add(1, RELAXED),
        }
    }

    #[cold]
    pub(crate) fn count_overdue(&self, base: CpuId) {
        self.bases[base.index()].overdue.fetch_add(1, RELAXED);
    }

    /// Adds a callback to the base's statistics, which also keep the label of the longest callback.
    /// Returns whether the callback was slow.
    pub(crate) fn count_callback(
        &self,
        base: CpuId,
        took: Duration,
        label: impl FnOnce() -> &'static str,
    ) -> bool {
        let base = &self.bases[base.index()];
        let is_slow = Ns::from_duration(took) >= self.slow_after;
        let is_longest = {
            let mut times = locked(&base.callbacks);
            times.count += 1;
            times.total += took;
            times.slow += u64::from(is_slow);
            took > times.longest
        };
        if is_longest {
            let label = label();
            let mut times = locked(&base.callbacks);
            if took > times.longest {
                (times.longest, times.longest_of) = (took, label);
            }
        }
        is_slow
    }

    pub(crate) fn cancels(&self, base: CpuId) -> (u64, u64) {
        let OfBase { idle, running, .. } = &self.bases[base.index()];
        (idle.load(RELAXED), running.load(RELAXED))
    }

    pub(crate) fn overdue(&self, base: CpuId) -> u64 {
        self.bases[base.index()].overdue.load(RELAXED)
    }

    pub(crate) fn callbacks(&self, base: CpuId) -> Option<CallbackTimes> {
        self.times.then(|| *locked(&self.bases[base.index()].callbacks))
    }
}

const RELAXED: Ordering = Ordering::Relaxed;
