//! The wakers that a driver collects while it runs a batch of callbacks, to call them later.
//!
//! A waker runs code of the program, which can wait for a lock, or drop any future. So a driver
//! calls wakers only between two callbacks, when it has collected [`FULL`] of them, and after the
//! batch (K2: no drop waits for a waker). Each batch has its own list on its thread's stack,
//! because a callback that advances a virtual clock runs a batch of other timers. A thread-local
//! list would not work while a thread that ends destroys its thread-locals.

use crate::platform::worker;
use core::task::Waker;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A batch pauses to call its wakers when it has collected this many. So the first task does not
/// wait for the whole batch, and the memory is bounded.
const FULL: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Keeps a waker until the batch of callbacks pauses.
    pub(crate) fn collect(&mut self, waker: Waker) {
        self.0.push(waker);
    }

    /// Returns whether the batch should pause now, to call the wakers.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.0.len() >= FULL
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls all wakers that have been collected. Returns how many of them panicked.
    #[cold]
    pub(crate) fn wake(&mut self) -> u64 {
        let mut panicked = 0;
        worker::run_wakers(|| {
            for waker in self.0.drain(..) {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    panicked += 1;
                    // Leak the payload: its drop might panic again.
                    std::mem::forget(payload);
                }
            }
        });
        panicked
    }
}
