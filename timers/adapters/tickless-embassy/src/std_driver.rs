//! The time driver for programs on an operating system: a thread that sleeps until the next expiry.
//!
//! Wakers run on that thread, after it has released its lock. A waker that panics ends neither the
//! thread nor the wakeups of other tasks.

use crate::TimerQueue;
use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use core::task::Waker;
use embassy_time_driver::{Driver, TICK_HZ};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

struct StdDriver {
    state: Mutex<Option<TimerQueue>>,
    /// Notified when the next expiry has become earlier.
    changed: Condvar,
}

embassy_time_driver::time_driver_impl!(static DRIVER: StdDriver = StdDriver {
    state: Mutex::new(None),
    changed: Condvar::new(),
});

/// Returns the instant of tick 0.
fn begin() -> Instant {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    *BEGIN.get_or_init(Instant::now)
}

impl Driver for StdDriver {
    fn now(&self) -> u64 {
        let ticks = begin().elapsed().as_nanos() * u128::from(TICK_HZ) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        let mut state = self.state();
        let queue = match &mut *state {
            Some(queue) => queue,
            None if start() => state.insert(TimerQueue::new()),
            // Without a thread, the task polls in a loop: busy, but correct.
            None => {
                drop(state);
                return waker.wake_by_ref();
            }
        };
        if queue.schedule_wake(at, waker) {
            self.changed.notify_one();
        }
    }
}

impl StdDriver {
    fn state(&self) -> MutexGuard<'_, Option<TimerQueue>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut due = Vec::new();
        let mut state = self.state();
        loop {
            let next = match &mut *state {
                Some(queue) => queue.expire(self.now(), |waker| due.push(waker)),
                None => u64::MAX,
            };
            if due.is_empty() {
                let waited = self.changed.wait_timeout(state, self.until(next));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            for waker in due.drain(..) {
                // The thread serves all tasks, so a waker that panics must not end it. The drop of
                // the payload might panic again.
                let wake = AssertUnwindSafe(|| waker.wake());
                core::mem::forget(std::panic::catch_unwind(wake));
            }
            state = self.state();
        }
    }

    /// Returns the time left until the tick `at`, at most an hour.
    fn until(&self, at: u64) -> Duration {
        let ns = u128::from(at) * 1_000_000_000 / u128::from(TICK_HZ);
        let ns = ns.saturating_sub(begin().elapsed().as_nanos());
        u64::try_from(ns).map_or(Duration::MAX, Duration::from_nanos).min(Duration::from_secs(3600))
    }
}

/// Starts the thread. Returns `false` if the system refuses it.
fn start() -> bool {
    let thread = std::thread::Builder::new().name("tickless/embassy".into());
    thread.spawn(|| DRIVER.run()).is_ok()
}
