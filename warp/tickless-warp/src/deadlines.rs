//! The deadlines of all traced threads and timers, in exact order. Deadlines of equal time are in
//! the order in which they were armed or, with a seed, in a random order. A name has one deadline.

use crate::line::Ns;
use fastrand::Rng;
use std::collections::HashMap;
use std::hash::Hash;
use tickless_core::local::{Clock, Key, LocalTimers};
use tickless_core::time::Instant;

/// Deadlines on the virtual monotonic clock, each with the name of what is due then.
pub(crate) struct Deadlines<T> {
    timers: LocalTimers<T>,
    keys: HashMap<T, Key>,
    due: Vec<Key>,
    /// How far past a deadline the clock must be. Where time flows, it goes on anyway.
    step: Ns,
    /// The random numbers that order deadlines of equal time.
    random: Option<Rng>,
}

impl<T: Copy + Eq + Hash> Deadlines<T> {
    pub(crate) fn new(now: Ns, step: Ns, seed: Option<u64>) -> Deadlines<T> {
        let timers = LocalTimers::new(Clock::manual(Instant::from_nanos(now)));
        let random = seed.map(Rng::with_seed);
        Deadlines { timers, keys: HashMap::new(), due: Vec::new(), step, random }
    }

    /// Arms a deadline, in place of an earlier one of the same name. Without room for it, does
    /// nothing.
    pub(crate) fn arm(&mut self, at: Ns, what: T) {
        self.cancel(what);
        if let Ok(key) = self.timers.insert_precise(what)
            && self.timers.start_at(key, Instant::from_nanos(at.saturating_add(self.step))).is_ok()
        {
            self.keys.insert(what, key);
        }
    }

    /// Cancels the deadline of a name, if it is armed.
    pub(crate) fn cancel(&mut self, what: T) {
        if let Some(key) = self.keys.remove(&what) {
            self.due.retain(|due| *due != key);
            self.timers.remove(key);
        }
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Ns> {
        if !self.due.is_empty() {
            return Some(0);
        }
        self.timers.next_event().map(Instant::as_nanos)
    }

    /// Removes the next deadline that has come by `now`, and returns its name.
    pub(crate) fn pop(&mut self, now: Ns) -> Option<T> {
        if self.due.is_empty() {
            self.timers.advance_into(Instant::from_nanos(now), &mut self.due);
            if let Some(random) = &mut self.random {
                // The clock jumps exactly to the earliest deadline. So deadlines that are due
                // together are equal, unless time flowed past several of them.
                random.shuffle(&mut self.due);
            }
            // Taken from the end.
            self.due.reverse();
        }
        let key = self.due.pop()?;
        let what = self.timers.remove(key)?;
        self.keys.remove(&what);
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(deadlines: &mut Deadlines<u32>, now: Ns) -> Vec<u32> {
        std::iter::from_fn(|| deadlines.pop(now)).collect()
    }

    #[test]
    fn ties_are_in_the_order_of_arming() {
        let mut deadlines = Deadlines::new(5, 0, None);
        [30, 20, 30, 20, 10].iter().zip(0..).for_each(|(at, n)| deadlines.arm(*at, n));
        assert_eq!(deadlines.next(), Some(10));
        assert_eq!(all(&mut deadlines, 20), [4, 1, 3]);
        deadlines.cancel(0);
        assert_eq!(deadlines.next(), Some(30));
        assert_eq!(all(&mut deadlines, 30), [2]);
        assert_eq!(deadlines.next(), None);
        // A deadline that has passed already is due at once.
        deadlines.arm(1, 9);
        assert!(deadlines.next().is_some_and(|at| at <= 30));
        assert_eq!(all(&mut deadlines, 30), [9]);
    }

    #[test]
    fn a_seed_shuffles_ties_and_repeats() {
        let order = |seed| {
            let mut deadlines = Deadlines::new(0, 0, seed);
            (0..50).for_each(|n| deadlines.arm(7, n));
            all(&mut deadlines, 7)
        };
        let plain: Vec<u32> = (0..50).collect();
        assert_eq!(order(None), plain);
        assert_eq!(order(Some(1)), order(Some(1)));
        assert_ne!(order(Some(1)), order(Some(2)));
        let mut sorted = order(Some(3));
        sorted.sort_unstable();
        assert_eq!(sorted, plain);
    }

    #[test]
    fn a_deadline_that_is_due_can_be_cancelled() {
        let mut deadlines = Deadlines::new(0, 0, None);
        deadlines.arm(5, 1);
        deadlines.arm(5, 2);
        assert_eq!(deadlines.pop(5), Some(1));
        deadlines.cancel(2);
        assert_eq!(deadlines.pop(5), None);
        // A name that is armed again has only its last deadline.
        deadlines.arm(6, 3);
        deadlines.arm(8, 3);
        assert_eq!([deadlines.pop(7), deadlines.pop(8)], [None, Some(3)]);
    }
}
