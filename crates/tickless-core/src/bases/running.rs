//! Which callbacks a base runs, and waiting until one of them is over.
//!
//! Beside a base's lock stands one word for each of its runners: the address of the timer whose
//! callback that runner is in, or 0. The word is written under the lock and read without it by
//! whoever cancels. The address is compared and never followed: the timer may be gone (X4), and
//! if another one has come to live there, somebody waits a little for nothing.
//!
//! # Waiting (X7)
//!
//! | canceller | runner |
//! |---|---|
//! | spins a little: most callbacks are short | |
//! | locks, sees the callback running, says that it waits, | |
//! | and notes how many waits have ended here | |
//! | parks until that number changes | locks, the callback is over |
//! | | counts up, unlocks, wakes everybody |
//!
//! The number changes for waiters alone, so a callback that nobody waits for ends with two plain
//! stores. Who parks after it has changed is not parked: parking compares.

use crate::platform::{Ordering, ParkingWord, Platform, Word};

/// Who runs callbacks of a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// The event device's handler.
    Handler,
    /// The base's expiry thread, if expiry is deferred.
    Thread,
    /// Another expiry thread, which stands in for the first while that is stuck in a callback.
    Rescuer,
}

pub(super) const RUNNERS: usize = 3;

/// The callbacks that a base runs.
pub(crate) struct Running<P: Platform> {
    timers: [P::Word; RUNNERS],
    /// How often a callback ended that somebody waited for.
    ended: P::ParkingWord,
}

impl<P: Platform> Running<P> {
    pub(crate) fn new() -> Running<P> {
        let word = |_| P::Word::new(0);
        Running { timers: core::array::from_fn(word), ended: P::ParkingWord::zero() }
    }

    /// Does anybody run this timer? Under the lock the answer is exact. Without it, a no is
    /// about the past; read with Acquire it comes with all that the callback wrote (X1).
    #[inline]
    pub(crate) fn has(&self, address: u64, order: Ordering) -> bool {
        self.timers.iter().any(|timer| timer.load(order) == address)
    }

    /// Does anybody else run this timer? Under the lock.
    pub(crate) fn has_elsewhere(&self, address: u64, runner: Runner) -> bool {
        let mut others = self.timers.iter().enumerate().filter(|(at, _)| *at != runner as usize);
        others.any(|(_, timer)| timer.load(Ordering::Relaxed) == address)
    }

    /// Which runner is in this timer's callback? Out of date as soon as it is known.
    pub(crate) fn runner_of(&self, address: u64) -> Option<Runner> {
        let all = [Runner::Handler, Runner::Thread, Runner::Rescuer];
        all.into_iter().find(|runner| self.timer(*runner).load(Ordering::Acquire) == address)
    }

    /// A callback is about to start. Under the lock, and before the timer's word says idle: who
    /// looks at both without the lock sees one of the two (R10).
    #[inline]
    pub(crate) fn begin(&self, runner: Runner, address: u64) {
        // Release: pairs with the Acquire in `has`. Who waits for the last timer and finds this
        // one, having missed the moment in between, has to see what the last one's callback
        // wrote (X1) and that it was restarted (R10).
        self.timer(runner).store(address, Ordering::Release);
    }

    /// A callback is over. Under the lock.
    #[inline]
    pub(crate) fn end(&self, runner: Runner) {
        // Release: pairs with the Acquire in `has`, and publishes what the callback wrote (X1).
        self.timer(runner).store(0, Ordering::Release);
    }

    /// How many waits have ended here. Under the lock.
    pub(crate) fn ended(&self) -> u32 {
        self.ended.count(Ordering::Relaxed)
    }

    /// Ends all waits. Under the lock; wake the waiters when it is free.
    pub(crate) fn end_waits(&self) {
        // Release: pairs with the Acquire in `still_waits`.
        self.ended.set_count(self.ended().wrapping_add(1), Ordering::Release);
    }

    /// Has no wait ended since `ended` was read?
    pub(crate) fn still_waits(&self, ended: u32) -> bool {
        self.ended.count(Ordering::Acquire) == ended
    }

    /// Where waiters park.
    pub(crate) fn parking(&self) -> &P::ParkingWord {
        &self.ended
    }

    fn timer(&self, runner: Runner) -> &P::Word {
        &self.timers[runner as usize]
    }
}
