//! The callbacks that a base runs, and waiting until one of them has returned.
//!
//! For each of its runners (the handler and the expiry threads), a base has a word outside the
//! lock: the address of the timer whose callback the runner executes, or 0. The words are written
//! under the lock; cancels read them without it. The address is compared and never dereferenced,
//! because the timer has possibly been freed (X4).
//!
//! # Waiting (X7)
//!
//! | canceller | runner |
//! |---|---|
//! | spins a little: most callbacks are short | |
//! | locks, sees that the callback runs, sets `has_waiters`, | |
//! | and reads how many waits have ended | |
//! | parks until that number changes | locks; the callback has returned |
//! | | increments the number, unlocks, wakes all waiters |
//!
//! The number changes for waiters only, so the end of a callback for which no thread waits costs
//! two plain stores. A thread that parks after the number has changed returns at once, because
//! parking compares it.

use crate::platform::{Ordering, ParkingWord, Platform, Word};

/// A runner: the handler or a thread that executes callbacks of a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// The event device's handler.
    Handler,
    /// The base's expiry thread, if expiry is deferred.
    Thread,
    /// A second expiry thread, which replaces the first one while a callback blocks it.
    Rescuer,
}

pub(super) const RUNNERS: usize = 3;

pub(crate) struct Running<P: Platform> {
    timers: [P::Word; RUNNERS],
    /// How often threads that wait for a callback were woken to check again, mostly because a
    /// callback has returned. They park on this word.
    ended: P::ParkingWord,
}

impl<P: Platform> Running<P> {
    pub(crate) fn new() -> Running<P> {
        let word = |_| P::Word::new(0);
        Running { timers: core::array::from_fn(word), ended: P::ParkingWord::zero() }
    }

    /// Returns whether a runner executes this timer's callback. Exact only under the lock. A caller
    /// that reads `false` with Acquire sees what the callback wrote (X1).
    #[inline]
    pub(crate) fn has(&self, address: u64, order: Ordering) -> bool {
        self.timers.iter().any(|timer| timer.load(order) == address)
    }

    /// Returns whether a runner other than `runner` executes the callback. The caller has the lock.
    pub(crate) fn has_in_another(&self, address: u64, runner: Runner) -> bool {
        let mut others = self.timers.iter().enumerate().filter(|(at, _)| *at != runner as usize);
        others.any(|(_, timer)| timer.load(Ordering::Relaxed) == address)
    }

    /// Records that a callback is about to start. The caller holds the lock, and makes the timer's
    /// state idle only after this call. So a thread that reads the state and this record without
    /// the lock sees the timer pending, or running, or both, but never neither (R10).
    #[inline]
    pub(crate) fn begin(&self, runner: Runner, address: u64) {
        // Release: pairs with the Acquire in `has`. A thread that waits for the runner's previous
        // timer, and finds this one in its place, must see what the previous callback wrote (X1)
        // and whether it restarted its timer (R10).
        self.timer(runner).store(address, Ordering::Release);
    }

    /// Records that a callback has returned. The caller holds the base's lock.
    #[inline]
    pub(crate) fn end(&self, runner: Runner) {
        // Release: pairs with the Acquire in `has`, and publishes what the callback wrote (X1).
        self.timer(runner).store(0, Ordering::Release);
    }

    /// Records that a callback no longer belongs to its timer. The callback itself calls this.
    /// Needs no lock: only a runner writes its own word, and every thread that knows a later timer
    /// at this address sees this store, which came first.
    pub(crate) fn detach(&self, address: u64) {
        for timer in &self.timers {
            if timer.load(Ordering::Relaxed) == address {
                // Release: pairs with the Acquire in `has`, as in `begin`, for a thread that waits
                // for the runner's previous timer.
                timer.store(0, Ordering::Release);
            }
        }
    }

    /// The value that a thread which begins to wait passes to `park`: the thread sleeps only while
    /// `ended` has this value. The caller holds the base's lock.
    pub(crate) fn ended(&self) -> u32 {
        self.ended.count(Ordering::Relaxed)
    }

    /// Makes waiting threads check again. The caller has the lock; it then unlocks and wakes them.
    pub(crate) fn end_waits(&self) {
        // Release: pairs with the Acquire in `still_waits`.
        self.ended.set_count(self.ended().wrapping_add(1), Ordering::Release);
    }

    /// Returns whether a waiting thread must sleep on: the count is still the `ended` that it read.
    pub(crate) fn still_waits(&self, ended: u32) -> bool {
        self.ended.count(Ordering::Acquire) == ended
    }

    /// The word on which waiters park.
    pub(crate) fn parking(&self) -> &P::ParkingWord {
        &self.ended
    }

    fn timer(&self, runner: Runner) -> &P::Word {
        &self.timers[runner as usize]
    }
}
