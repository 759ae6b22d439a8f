//! Wakers that a batch of callbacks leaves to be woken when it pauses or is over.
//!
//! A waker is somebody else's code: it may run the task at once, wait for a lock, or drop any
//! future, the one that fired included. So it runs between two callbacks, when there are [`FULL`],
//! and when the batch is over (K2): no callback is at work then on this runner, so no drop, cancel
//! or shut-down waits for it. Each batch has its own
//! list, on its runner's stack: a callback that moves the clock of other timers wakes theirs, and
//! nobody of its own batch. Nothing here is a thread-local, so it works while a thread ends.

use crate::platform::worker;
use core::task::Waker;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A batch pauses to wake so many: the first does not wait for all the others, and the memory is
/// bounded.
const FULL: usize = 64;

/// Is a batch to pause when the callback that it is in is over?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pause {
    Yes,
    No,
}

/// What one batch has collected.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Keeps a waker until the batch pauses. Returns whether it is to do so.
    pub(crate) fn collect(&mut self, waker: Waker) -> Pause {
        self.0.push(waker);
        if self.0.len() < FULL { Pause::No } else { Pause::Yes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all of them. Returns how many panicked.
    #[cold]
    pub(crate) fn wake(&mut self) -> u64 {
        let mut panicked = 0;
        worker::while_it_wakes(|| {
            for waker in self.0.drain(..) {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    panicked += 1;
                    // Dropping it might panic again.
                    std::mem::forget(payload);
                }
            }
        });
        panicked
    }
}
