//! Cancelling: taking an arming back, and knowing that a callback is over.
//!
//! # Guarantees
//!
//! - X10 exactly one of "cancelled" and "fired" holds for each arming: both are decided under
//!   the lock of the timer's base.
//! - X2, X9 one base is looked at, however many there are: a running timer stays on its base.
//! - X5 after a shut-down every later arm is refused.

use crate::base::{Bases, Family};
use crate::link::TimerRef;
use crate::platform::{Ordering, Platform, Word};
use crate::state::Life;

/// What a cancel found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel {
    /// The timer was pending; that arming will not fire.
    Pending,
    /// The timer was neither pending nor running.
    Idle,
    /// Its callback is running just now. Had it been armed again meanwhile, that arming has
    /// been cancelled too.
    Running,
}

impl<P: Platform> Bases<P> {
    /// Cancels a timer without waiting for its callback.
    ///
    /// Takes the lock of one base, none if the timer is idle and not running. No system call,
    /// no allocation; cost independent of the number of bases.
    #[inline]
    pub fn cancel<L: Family>(&self, timer: TimerRef<P, L>) -> Cancel {
        if let Some(found) = self.look(timer) {
            return found;
        }
        self.deactivate(timer, |life| life)
    }

    /// Cancels a timer and makes every later arming fail (X5), without waiting for its
    /// callback.
    pub fn shutdown<L: Family>(&self, timer: TimerRef<P, L>) -> Cancel {
        let fresh = Life::FRESH;
        // A timer that was never armed has no lock; a racing first start has to win or lose.
        if timer
            .word()
            .compare_exchange(
                fresh.word(),
                fresh.shut().word(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
        {
            return Cancel::Idle;
        }
        self.deactivate(timer, Life::shut)
    }

    /// Is the timer pending, or its callback running? Never a false no, even while it changes
    /// its base (R10). A yes may be out of date.
    pub fn is_active<L: Family>(&self, timer: TimerRef<P, L>) -> bool {
        loop {
            // Acquire: who sees the timer idle sees that its base names it as running.
            let seen = timer.word().load(Ordering::Acquire);
            let life = Life::from_word(seen);
            if life.is_pending() || life.is_migrating() {
                return true;
            }
            let Some(cpu) = life.base() else { return false };
            // Acquire: who sees another timer there sees what this one's restart wrote.
            if self.base(cpu).running.load(Ordering::Acquire) == timer.address() {
                return true;
            }
            if timer.word().load(Ordering::Acquire) == seen {
                return false;
            }
        }
    }

    /// Is the timer pending? May be out of date as soon as it is known.
    pub fn is_pending<L: Family>(&self, timer: TimerRef<P, L>) -> bool {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        life.is_pending() || life.is_migrating()
    }

    /// Is the callback of this timer running?
    pub fn is_running<L: Family>(&self, timer: TimerRef<P, L>) -> bool {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        // Acquire: who finds the callback over sees what it wrote (X1).
        life.base()
            .is_some_and(|cpu| self.base(cpu).running.load(Ordering::Acquire) == timer.address())
    }

    /// Shuts a timer down and waits until its callback runs nowhere: it may be freed then.
    ///
    /// Must not be called from that callback.
    pub fn shutdown_and_wait<L: Family>(&self, timer: TimerRef<P, L>) -> Cancel {
        let found = self.shutdown(timer);
        let mut round = 0;
        while self.is_running(timer) {
            self.platform().relax(round);
            round = round.saturating_add(1);
        }
        found
    }

    /// The answer, if no lock is needed for it.
    #[inline]
    fn look<L: Family>(&self, timer: TimerRef<P, L>) -> Option<Cancel> {
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        if life.is_pending() || life.is_migrating() {
            return None;
        }
        if self.is_active(timer) { None } else { Some(Cancel::Idle) }
    }

    #[inline]
    fn deactivate<L: Family>(
        &self,
        timer: TimerRef<P, L>,
        becomes: impl FnOnce(Life) -> Life,
    ) -> Cancel {
        let Some((cpu, mut state, life)) = self.lock_timer(timer) else { return Cancel::Idle };
        let left = self.take_out(cpu, &mut state, timer, life, || self.here());
        state.counts.cancelled += u64::from(life.is_pending());
        timer.word().store(becomes(life.idle()).word(), Ordering::Release);
        let running = self.base(cpu).running.load(Ordering::Relaxed) == timer.address();
        drop(state);
        self.finish(left);
        match (running, life.is_pending()) {
            (true, _) => Cancel::Running,
            (false, true) => Cancel::Pending,
            (false, false) => Cancel::Idle,
        }
    }
}
