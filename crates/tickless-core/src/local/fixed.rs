//! Timeouts of one duration for all: idle connections, DNS queries, keep-alives.
//!
//! A server gives all connections of a listener the same idle timeout. [`FixedTimeouts`] keeps
//! them by *class*: a duration, which can be changed or scaled while timers are pending, without
//! touching any of them. Under overload a proxy halves the idle timeouts of a listener with one
//! call, and the longest idle connections fire with the next advance.
//!
//! ```
//! use core::time::Duration;
//! use tickless_core::{local::FixedTimeouts, time::Instant};
//!
//! let mut timeouts = FixedTimeouts::new(Instant::ZERO);
//! let http = timeouts.add_class(Duration::from_secs(60))?;
//! let connection = timeouts.insert(http, "10.0.0.7:4711")?;
//! timeouts.start(connection)?;
//!
//! timeouts.advance(Instant::from_secs(20), |_, _| unreachable!("nothing is due"));
//! timeouts.start(connection)?; // a request: the timeout begins again
//! timeouts.scale(http, 0.5)?; // overload: 30 s for all of the class
//!
//! let mut closed = Vec::new();
//! timeouts.advance(Instant::from_secs(52), |timeouts, key| closed.extend(timeouts.remove(key)));
//! assert_eq!(closed, ["10.0.0.7:4711"]);
//! # Ok::<(), tickless_core::local::FixedError>(())
//! ```
//!
//! # Guarantees
//!
//! - A timer never fires before its class's duration has passed since it was started, as that
//!   duration is when it fires. It is late by at most a sixteenth of the duration that the class
//!   was made with.
//! - Starting a pending timer again is one store. Starting and cancelling are O(1) and allocate
//!   nothing; so is changing a class.
//!
//! # How
//!
//! A class is a ring of chains of slot numbers, in order of arming: a chain for each span of a
//! 32nd of the duration in which timers were started. A timer that is started again stays where it
//! is, with a new stamp. When a span's timers are due, those with a newer stamp go to their own
//! span, and the others fire. Only the moment at which a span is looked at depends on the duration.

use super::chains::Chains;
use super::key::{Family, Key};
use super::table::Table;
use crate::time::{Instant, Ns};
use alloc::vec::Vec;
use class::ClassState;
use core::fmt;

pub use class::Class;

/// What is being fired.
const DUE: usize = 0;
/// Spans that a class keeps apart. Timers of a later one are looked at early, which costs a look.
const SPANS: usize = 128;

/// What can go wrong with fixed timeouts.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum FixedError {
    /// The key's timer has been removed, or the key is another table's.
    NoSuchTimer(Key),
    /// The class is another table's.
    NoSuchClass(Class),
    /// There are 2^29 timers already, or 2^16 classes.
    Full,
    /// A factor must be a number from 0 on.
    NoFactor(f64),
}

impl fmt::Display for FixedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FixedError::NoSuchTimer(key) => {
                write!(f, "there is no timer {key:?} here; it has been removed, or is another's")
            }
            FixedError::NoSuchClass(_) => f.write_str("there is no such class here; add it first"),
            FixedError::Full => f.write_str("the table of timers is full; remove some first"),
            FixedError::NoFactor(factor) => {
                write!(f, "a duration cannot be scaled by {factor}; use a number from 0 on")
            }
        }
    }
}

impl core::error::Error for FixedError {}

/// Timeouts for one thread, by class, each with a value of type `T`.
pub struct FixedTimeouts<T> {
    now: Ns,
    /// With each value the number of its class.
    table: Table<(u32, T)>,
    chains: Chains,
    classes: Vec<ClassState>,
    /// The class of what is in [`DUE`].
    due: usize,
    pending: usize,
}

impl<T> fmt::Debug for FixedTimeouts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FixedTimeouts")
            .field("timers", &self.len())
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

impl<T> FixedTimeouts<T> {
    /// No classes and no timers.
    pub fn new(now: Instant) -> FixedTimeouts<T> {
        let chains = Chains::new(SPANS, DUE);
        let (table, classes) = (Table::new(), Vec::new());
        FixedTimeouts { now: now.into(), table, chains, classes, due: 0, pending: 0 }
    }

    /// Makes room for a timer of a class, not started. O(1); allocates now and then.
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchClass`] if the class is another table's, [`FixedError::Full`] if there
    /// are 2^29 timers.
    pub fn insert(&mut self, class: Class, value: T) -> Result<Key, FixedError> {
        self.class(class)?;
        let room = self.table.capacity();
        let slot = self.table.insert((class.0, value)).ok_or(FixedError::Full)?;
        if self.table.capacity() != room {
            self.chains.reserve(self.table.capacity());
        }
        Ok(Key::new(slot, Family::Coarse))
    }

    /// Cancels a timer and gives its value back.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let record = self.table.records.find(key.coarse())?;
        self.pending -= usize::from(record.is_pending());
        if record.is_on_chain() {
            self.chains.remove(record.place, key.coarse().index);
            record.rest();
        }
        self.table.remove(key.coarse()).map(|(_, value)| value)
    }

    /// A timer's value.
    pub fn value(&mut self, key: Key) -> Option<&mut T> {
        self.table.value(key.coarse()).map(|(_, value)| value)
    }

    /// A timer's class.
    pub fn class_of(&mut self, key: Key) -> Option<Class> {
        self.table.value(key.coarse()).map(|&mut (class, _)| Class(class))
    }

    /// How many timers there are, started or not.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Is there no timer at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers are pending.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// What the last advance said.
    pub fn now(&self) -> Instant {
        self.now.into()
    }

    /// Starts a timer, or starts it again: it fires its class's duration after the present. One
    /// store if it is pending.
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn start(&mut self, key: Key) -> Result<(), FixedError> {
        let record = self.table.records.find(key.coarse()).ok_or(FixedError::NoSuchTimer(key))?;
        if !record.is_pending() {
            self.pending += 1;
        }
        if record.is_on_chain() {
            record.time = self.now;
            record.set_pending();
            return Ok(());
        }
        self.start_anew(key)
    }

    #[inline(never)]
    fn start_anew(&mut self, key: Key) -> Result<(), FixedError> {
        let class = self.class_of(key).ok_or(FixedError::NoSuchTimer(key))?;
        self.put(class.0 as usize, key.coarse().index, self.now);
        Ok(())
    }

    /// Cancels a timer. Returns whether it was pending. One store.
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Result<bool, FixedError> {
        let record = self.table.records.find(key.coarse()).ok_or(FixedError::NoSuchTimer(key))?;
        let pending = record.is_pending();
        record.cancel();
        self.pending -= usize::from(pending);
        Ok(pending)
    }

    /// Is the timer pending?
    pub fn is_pending(&mut self, key: Key) -> bool {
        self.table.records.find(key.coarse()).is_some_and(|record| record.is_pending())
    }

    /// When to advance next; [`Instant::NEVER`] if nothing is pending. Never after a timer must
    /// fire; before it where all timers of a span were started again or cancelled. O(classes).
    pub fn next_event(&self) -> Instant {
        if self.pending == 0 {
            return Instant::NEVER;
        }
        if !self.chains.is_empty(DUE) {
            return self.now();
        }
        let due = (0..self.classes.len()).filter_map(|class| Some(self.oldest(class)?.1));
        due.min().unwrap_or(Ns::NEVER).into()
    }

    /// Tells the timers the time and calls `fire` for each one that is due. Returns how many
    /// fired. The callback may do anything with the timers.
    pub fn advance(&mut self, now: Instant, fire: impl FnMut(&mut Self, Key)) -> usize {
        self.advance_at_most(now, usize::MAX, fire)
    }

    /// The same, but looks at no more than `budget` timers; what is left is first in line next
    /// time, and can still be started again and cancelled.
    pub fn advance_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        mut fire: impl FnMut(&mut Self, Key),
    ) -> usize {
        self.now = self.now.max(now.into());
        let (mut left, mut fired) = (budget, 0);
        while left > 0 {
            let Some(slot) = self.chains.pop(|slot| self.table.prefetch(slot)) else {
                if self.collect() {
                    continue;
                }
                break;
            };
            left -= 1;
            if self.is_due(slot) {
                fired += 1;
                fire(self, Key::new(self.table.records.key_of(slot), Family::Coarse));
            }
        }
        fired
    }

    /// Looks at a timer that is off its chain: it fires, rests, or goes where it belongs.
    fn is_due(&mut self, slot: u32) -> bool {
        let due = self.classes.get(self.due).map_or(Ns::ZERO, |class| class.scaled);
        let Some(record) = self.table.records.record(slot) else { return false };
        if !record.is_pending() {
            record.rest();
            return false;
        }
        let stamp = record.time;
        if stamp.after(due) <= self.now {
            record.rest();
            self.pending -= 1;
            return true;
        }
        self.put(self.due, slot, stamp);
        false
    }

    /// Puts a timer that was started at this moment into its span.
    fn put(&mut self, class: usize, slot: u32, stamp: Ns) {
        // What is being fired may have to go into spans before this one.
        let is_empty =
            self.oldest(class).is_none() && (self.due != class || self.chains.is_empty(DUE));
        let Some(state) = self.classes.get_mut(class) else { return };
        let span = stamp.0 / state.span;
        if is_empty {
            state.first = state.first.max(span);
        }
        if span < state.first {
            state.oldest_misplaced = state.oldest_misplaced.min(stamp);
        }
        let span = span.clamp(state.first, state.first + SPANS as u64 - 1);
        let place = self.chains.push(chain_of(class, span), slot, &mut self.table.records);
        if let Some(record) = self.table.records.record(slot) {
            record.arm(stamp, 0, place);
        }
    }

    /// The first span of a class that has timers, and when they are looked at.
    fn oldest(&self, class: usize) -> Option<(u64, Ns)> {
        let state = self.classes.get(class)?;
        let word = chain_of(class, 0) / 64;
        let low = u128::from(self.chains.occupied(word));
        let occupied = low | u128::from(self.chains.occupied(word + 1)) << 64;
        if occupied == 0 {
            return None;
        }
        let ahead = occupied.rotate_right((state.first % SPANS as u64) as u32).trailing_zeros();
        let span = state.first + u64::from(ahead);
        let misplaced = match state.oldest_misplaced {
            Ns::NEVER => Ns::NEVER,
            stamp => stamp.after(state.scaled),
        };
        Some((span, state.due_at(span).min(misplaced)))
    }

    /// Makes the timers of the next class due of which spans have come due, if there is one.
    #[cold]
    fn collect(&mut self) -> bool {
        (0..self.classes.len()).any(|class| {
            let mut any = false;
            while let Some((span, due)) = self.oldest(class)
                && due <= self.now
            {
                self.classes[class].first = span + 1;
                // What is still not due is put back, and noted again if need be.
                self.classes[class].oldest_misplaced = Ns::NEVER;
                self.chains.splice(chain_of(class, span), DUE);
                any = true;
            }
            if any {
                self.due = class;
                let state = &mut self.classes[class];
                // What is not due was started after this, and so was all that is left.
                state.first = state.first.max(self.now.since(state.scaled).0 / state.span);
            }
            any
        })
    }
}

fn chain_of(class: usize, span: u64) -> usize {
    (class + 1) * SPANS + span as usize % SPANS
}

// Down here, so that the documentation lists its methods after those above.
mod class;
