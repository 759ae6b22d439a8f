//! The callbacks that a base runs, and waiting until one of them has returned.
//!
//! Beside a base's lock there is one word for each of its runners: the address of the timer whose
//! callback that runner is in, or 0. The words are written under the lock and read without it by
//! cancels. The address is compared and never followed: the timer may be gone (X4).
//!
//! # Identity
//!
//! If a callback frees its timer, another timer may be made at the same address while the callback
//! still runs. So the callback must [detach](super::Bases::detach) itself from its timer first:
//! the word is 0 from then on, and no other timer is taken for the one that is gone.
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

/// The runners that execute callbacks of a base.
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

/// The callbacks that a base runs.
pub(crate) struct Running<P: Platform> {
    timers: [P::Word; RUNNERS],
    /// How many callbacks have returned for which a thread waited.
    ended: P::ParkingWord,
}

impl<P: Platform> Running<P> {
    pub(crate) fn new() -> Running<P> {
        let word = |_| P::Word::new(0);
        Running { timers: core::array::from_fn(word), ended: P::ParkingWord::zero() }
    }

    /// Returns whether a runner is in this timer's callback. Exact under the lock. Without it,
    /// `false` may be out of date; read with Acquire, `false` comes with all that the callback
    /// wrote (X1).
    #[inline]
    pub(crate) fn has(&self, address: u64, order: Ordering) -> bool {
        self.timers.iter().any(|timer| timer.load(order) == address)
    }

    /// Returns whether another runner is in this timer's callback. Under the lock.
    pub(crate) fn has_in_another(&self, address: u64, runner: Runner) -> bool {
        let mut others = self.timers.iter().enumerate().filter(|(at, _)| *at != runner as usize);
        others.any(|(_, timer)| timer.load(Ordering::Relaxed) == address)
    }

    /// Returns the runner that is in this timer's callback. Out of date at once.
    pub(crate) fn runner_of(&self, address: u64) -> Option<Runner> {
        let all = [Runner::Handler, Runner::Thread, Runner::Rescuer];
        all.into_iter().find(|runner| self.timer(*runner).load(Ordering::Acquire) == address)
    }

    /// A callback is about to start. Under the lock, and before the timer's word becomes idle: a
    /// thread that reads both without the lock sees one of the two (R10).
    #[inline]
    pub(crate) fn begin(&self, runner: Runner, address: u64) {
        // Release: pairs with the Acquire in `has`. A thread that waits for the last timer and
        // finds this one must see what the last one's callback wrote (X1) and whether it was
        // restarted (R10).
        self.timer(runner).store(address, Ordering::Release);
    }

    /// A callback has returned. Under the lock.
    #[inline]
    pub(crate) fn end(&self, runner: Runner) {
        // Release: pairs with the Acquire in `has`, and publishes what the callback wrote (X1).
        self.timer(runner).store(0, Ordering::Release);
    }

    /// The callback of this timer, which calls this, has nothing to do with it any more. Without
    /// the lock: only a runner writes its own word, and a timer that is made at this address comes
    /// after this store for every thread that knows it.
    pub(crate) fn detach(&self, address: u64) {
        for timer in &self.timers {
            if timer.load(Ordering::Relaxed) == address {
                // Release: as in `begin`, for a thread that waits for the last timer.
                timer.store(0, Ordering::Release);
            }
        }
    }

    /// How many waits have ended here. Under the lock.
    pub(crate) fn ended(&self) -> u32 {
        self.ended.count(Ordering::Relaxed)
    }

    /// Ends all waits. Under the lock; wake the waiters after it has been released.
    pub(crate) fn end_waits(&self) {
        // Release: pairs with the Acquire in `still_waits`.
        self.ended.set_count(self.ended().wrapping_add(1), Ordering::Release);
    }

    /// Returns whether no wait has ended since `ended` was read.
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
