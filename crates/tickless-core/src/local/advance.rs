//! What is due, and when to look next.

use super::LocalTimers;
use super::key::{Family, Key};
use crate::state::Lane;
use crate::time::{Instant, Ns};
use alloc::vec::Vec;

impl<T> LocalTimers<T> {
    /// When to advance next; [`Instant::NEVER`] if nothing is pending. May have passed. Never
    /// after the next timer comes due; before it if all timers of a bucket have been pushed
    /// out, or if it is beyond the last level of the wheel, which reaches 12 days with
    /// a tick of 1 ms.
    #[inline]
    pub fn next_event(&self) -> Instant {
        self.wheel.next_event().min(self.next_precise()).into()
    }

    /// The same, to the tick: coarse timers that have been pushed out go where they belong first,
    /// until one is found that is due in its bucket. O(1) for each that moves; a timer moves at
    /// most once for each time that it was pushed out.
    ///
    /// Worth it where a wakeup costs more than that: a program that may sleep for long.
    pub fn settled_next_event(&mut self) -> Instant {
        self.wheel.settle(&mut self.coarse.records).min(self.next_precise()).into()
    }

    #[inline]
    fn next_precise(&self) -> Ns {
        self.queue.first().map_or(Ns::NEVER, |window| window.hard)
    }

    /// How many advances found nothing but coarse timers that had been pushed out: wakeups for
    /// nothing, if [`next_event`](Self::next_event) asked for them.
    pub fn idle_wakeups(&self) -> u64 {
        self.idle_wakeups
    }

    /// Tells the timers the time and calls `fire` for each one that is due. Returns how many
    /// fired. The callback may do anything with the timers: arm, cancel, insert, remove.
    ///
    /// What it arms for the past fires with the next advance, so this ends.
    #[inline]
    pub fn advance(&mut self, now: Instant, fire: impl FnMut(&mut Self, Key)) -> usize {
        self.advance_at_most(now, usize::MAX, fire)
    }

    /// The same, but looks at no more than `budget` timers. What is left is first in line next
    /// time, and can still be cancelled; [`next_event`](Self::next_event) has passed then.
    #[inline]
    pub fn advance_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        mut fire: impl FnMut(&mut Self, Key),
    ) -> usize {
        let (mut left, mut fired) = (budget, 0);
        if !self.begin_advance(now.into()) {
            return 0;
        }
        while let Some(key) = self.pop_precise(&mut left) {
            fired += 1;
            fire(self, key);
        }
        while let Some(slot) = self.wheel.pop(&mut self.coarse, &mut left) {
            fired += 1;
            fire(self, Key::new(slot, Family::Coarse));
        }
        self.idle_wakeups += u64::from(fired == 0 && left < budget);
        fired
    }

    /// Tells the timers the time and adds the keys of those that are due to `fired`, in the order
    /// in which they would fire; they are not pending any more. Returns how many.
    ///
    /// The fastest way to take many: they are not looked at one by one.
    pub fn advance_into(&mut self, now: Instant, fired: &mut Vec<Key>) -> usize {
        self.advance_into_at_most(now, usize::MAX, fired)
    }

    /// The same, but looks at no more than `budget` timers, as
    /// [`advance_at_most`](Self::advance_at_most).
    pub fn advance_into_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        fired: &mut Vec<Key>,
    ) -> usize {
        let (mut left, before) = (budget, fired.len());
        if !self.begin_advance(now.into()) {
            return 0;
        }
        while let Some(key) = self.pop_precise(&mut left) {
            fired.push(key);
        }
        self.wheel.pop_all(&mut self.coarse, &mut left, |due| fired.extend_from_slice(due));
        let count = fired.len() - before;
        self.idle_wakeups += u64::from(count == 0 && left < budget);
        count
    }

    /// A pass over what is due by `now` begins: what callbacks arm from here on for the past is
    /// the next one's, whichever family it is of. Returns whether anything may be due.
    #[inline]
    fn begin_advance(&mut self, now: Ns) -> bool {
        self.now = self.now.max(now);
        let coarse = self.wheel.advance(self.now);
        if self.precise.len() > 0 {
            self.begin_precise();
            return true;
        }
        coarse
    }

    #[inline(never)]
    fn begin_precise(&mut self) {
        let slots = &mut self.precise;
        self.queue.begin_pass(self.now, |node| {
            let slot = slots.key_of(node);
            if let Some(precise) = slots.value(slot) {
                precise.lane = Lane::Queued;
            }
        });
    }

    #[inline]
    fn pop_precise(&mut self, budget: &mut usize) -> Option<Key> {
        if *budget == 0 || self.precise.len() == 0 {
            return None;
        }
        let node = self.queue.pop()?;
        *budget -= 1;
        Some(Key::new(self.precise.key_of(node), Family::Precise))
    }
}
