//! Firing the timers that are due, and the time of the next event.

use super::LocalTimers;
use super::key::Key;
use crate::time::{Instant, Ns};
use alloc::vec::Vec;

impl<T> LocalTimers<T> {
    /// Returns when to call [`advance`](Self::advance) next; `None` if no timer is pending. The
    /// cost depends on the number of the wheel's levels only.
    ///
    /// The returned time is possibly in the past. It is never later than the time at which the next
    /// timer should fire. It is earlier if all timers of a bucket were cancelled or pushed out
    /// (armed again for a later time), and for timers beyond the last level of the wheel.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        event(self.wheel.next_event().min(self.heap.next_event()))
    }

    /// Sets the current time and calls `fire` for each timer that is due. Returns how many fired.
    ///
    /// A time before that of the last advance counts as that time. The callback can arm, cancel,
    /// insert and remove any timers. A timer that it arms for the past fires with the next advance,
    /// so an advance always ends.
    #[inline]
    pub fn advance(&mut self, now: Instant, fire: impl FnMut(&mut Self, Key)) -> usize {
        self.advance_at_most(now, usize::MAX, fire)
    }

    /// Like [`advance`](Self::advance), but examines no more than `budget` timers.
    ///
    /// The remaining timers fire first with the next advance and can still be cancelled; until then
    /// [`next_event`](Self::next_event) returns a time that has passed.
    #[inline]
    pub fn advance_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        mut fire: impl FnMut(&mut Self, Key),
    ) -> usize {
        let (mut left, mut fired) = (budget, 0);
        if !self.begin_advance(now.to_ns(), budget) {
            return 0;
        }
        while let Some(key) = self.pop_precise(&mut left) {
            fired += 1;
            fire(self, key);
        }
        while let Some(slot) = self.wheel.pop(&mut self.coarse, &mut left) {
            fired += 1;
            fire(self, Key::of_coarse(slot));
        }
        fired
    }

    /// Sets the current time and appends the keys of all due timers to `fired`, in the order in
    /// which `advance` would pass them to its callback. After the call, these timers are no longer
    /// pending. Returns how many keys were appended.
    ///
    /// This is the fastest way to take many timers: it takes up to fourteen timers in one step.
    pub fn advance_into(&mut self, now: Instant, fired: &mut Vec<Key>) -> usize {
        self.advance_into_at_most(now, usize::MAX, fired)
    }

    /// Like [`advance_into`](Self::advance_into), but examines no more than `budget` timers: see
    /// [`advance_at_most`](Self::advance_at_most).
    pub fn advance_into_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        fired: &mut Vec<Key>,
    ) -> usize {
        let (mut left, before) = (budget, fired.len());
        if !self.begin_advance(now.to_ns(), budget) {
            return 0;
        }
        while let Some(key) = self.pop_precise(&mut left) {
            fired.push(key);
        }
        self.wheel.pop_all(&mut self.coarse, &mut left, |due| fired.extend_from_slice(due));
        fired.len() - before
    }

    /// Begins a pass over the timers due by `now`, which examines at most `budget` timers. Timers
    /// that callbacks arm for the past wait for the next pass. Returns false only if none is due.
    #[inline]
    fn begin_advance(&mut self, now: Ns, budget: usize) -> bool {
        self.clock.advance(now);
        let now = self.clock.advanced;
        let coarse = self.wheel.advance(now);
        if self.precise.len() > 0 {
            self.heap.begin_pass(&mut self.precise.records, now, budget);
            return true;
        }
        coarse
    }

    /// Removes the next precise timer that is due, and counts it against the budget.
    #[inline]
    fn pop_precise(&mut self, budget: &mut usize) -> Option<Key> {
        if *budget == 0 || self.precise.len() == 0 {
            return None;
        }
        let slot = self.heap.pop(&mut self.precise.records)?;
        *budget -= 1;
        Some(Key::of_precise(slot))
    }
}

/// Converts the time of an event; `None` if it is [`Ns::NEVER`].
#[inline]
pub(super) fn event(at: Ns) -> Option<Instant> {
    (at != Ns::NEVER).then_some(at.into())
}
