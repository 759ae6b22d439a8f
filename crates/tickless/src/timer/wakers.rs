//! The wakers that a batch of callbacks has collected.
//!
//! A waker runs code of the program: it may run the task at once, wait for a lock, or drop any
//! future, the one that fired included. So wakers run between two callbacks, when [`FULL`] have
//! been collected, and when the batch has ended (K2): this runner is in no callback then, so no
//! drop, cancel or shutdown waits for it. Each batch has its own list, on its runner's stack: a
//! callback that advances the clock of other timers wakes their tasks, and none of its own batch.
//! There is no thread-local here, so this works while a thread ends.

use crate::platform::worker;
use core::task::Waker;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A batch pauses to wake this many: the first does not wait for all others, and memory is bounded.
const FULL: usize = 64;

/// Whether a batch should pause when its callback has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    Yes,
    No,
}

/// The wakers of one batch.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Keeps a waker until the batch pauses. Returns whether it should pause now.
    pub(crate) fn collect(&mut self, waker: Waker) -> Pause {
        self.0.push(waker);
        if self.0.len() < FULL { Pause::No } else { Pause::Yes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all of them. Returns how many wakers panicked.
    #[cold]
    pub(crate) fn wake(&mut self) -> u64 {
        let mut panicked = 0;
        worker::run_wakers(|| {
            for waker in self.0.drain(..) {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    panicked += 1;
                    // Its drop might panic again.
                    std::mem::forget(payload);
                }
            }
        });
        panicked
    }
}
