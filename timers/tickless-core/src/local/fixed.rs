//! Timeouts with few different durations, as for idle connections, DNS queries and keep-alives.
//!
//! [`FixedTimeouts`] groups timers in *classes*. The timers of a class share a duration, which can
//! be changed or scaled while timers are pending, in constant time.
//!
//! # Guarantees
//!
//! - A timer never fires before its class's duration has passed since the timer was started; the
//!   duration at the time of firing counts. The timer is late by at most a sixteenth of that
//!   duration, or of the duration that the class was created with if that one is longer, or by a
//!   microsecond if that is longer than both.
//! - Restarting a pending timer is one store. Starting and cancelling are O(1) and do not allocate;
//!   nor does changing a class. After a duration has grown more than threefold, the next advance
//!   examines each pending timer of the class once.
//!
//! # Implementation
//!
//! A class has a fixed number of chains, used in turn. A chain is a list of timers, each as the
//! number of its slot in a table: the timers that were started within a 32nd of the duration. A
//! timer that is restarted stays on its chain and gets a new start time. When a span comes due,
//! timers with a newer start time are moved to their own span, and the others fire. The duration
//! determines when a span comes due, so that changing it moves no timer. When it has changed so
//! much that the length of the spans no longer suits it, the next advance distributes the timers
//! over spans of another length.

use super::advance::event;
use super::chains::Chains;
use super::key::Key;
use super::table::{SlotKey, Table};
use super::{Clock, LocalError};
use crate::time::{Instant, Ns};
use alloc::vec::Vec;
use class::ClassState;
use core::fmt;

pub use class::Class;

/// The chain of timers that have come due.
const DUE: usize = 0;
/// The number of chains of a class, one for each span of time in which timers were started. Timers
/// that were started after the last span share its chain. Some of these are examined too early, at
/// the time when the first timer of this chain is due.
const SPANS: usize = 128;

/// Identifies a timer of one [`FixedTimeouts`]. After the timer has been removed, its key finds no
/// timer. A key is 64 bits long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FixedKey(Key);

impl FixedKey {
    /// Returns the key as a number other than 0, for callers that cannot store a [`FixedKey`].
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// Returns the key from which [`to_bits`](FixedKey::to_bits) made this number. A key that is
    /// made from any other number finds no timer, or an arbitrary one.
    #[inline]
    pub fn from_bits(bits: u64) -> FixedKey {
        FixedKey(Key::from_bits(bits))
    }

    #[inline]
    fn slot(self) -> SlotKey {
        self.0.coarse()
    }
}

impl fmt::Debug for FixedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Timeouts for one thread, grouped in classes, each with a value of type `T`.
pub struct FixedTimeouts<T> {
    clock: Clock,
    /// The timers: for each, the number of its class and its value.
    table: Table<(u32, T)>,
    chains: Chains,
    classes: Vec<ClassState>,
    /// The class of the timers on [`DUE`].
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
    /// Returns a set without classes and timers.
    pub fn new(clock: Clock) -> FixedTimeouts<T> {
        let chains = Chains::new(SPANS, DUE);
        let (table, classes) = (Table::new(), Vec::new());
        FixedTimeouts { clock, table, chains, classes, due: 0, pending: 0 }
    }

    /// Adds a timer to a class without starting it. O(1). A full table grows by an eighth.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchClass`] if the class belongs to another set of timers,
    /// [`LocalError::Full`] if there are 2^29 timers.
    pub fn insert(&mut self, class: Class, value: T) -> Result<FixedKey, LocalError> {
        self.class(class)?;
        let room = self.table.capacity();
        let slot = self.table.insert((class.0, value)).ok_or(LocalError::Full)?;
        if self.table.capacity() != room {
            self.chains.reserve(self.table.capacity());
        }
        Ok(FixedKey(Key::of_coarse(slot)))
    }

    /// Cancels a timer, removes it, and returns its value. `None` if it has been removed already.
    pub fn remove(&mut self, key: FixedKey) -> Option<T> {
        let record = self.table.records.find_mut(key.slot())?;
        self.pending -= usize::from(record.is_pending());
        if record.is_on_chain() {
            self.chains.remove(record.place, key.slot().index);
            record.rest();
        }
        self.table.remove(key.slot()).map(|(_, value)| value)
    }

    /// Returns a timer's value; `None` if the timer has been removed.
    pub fn get(&self, key: FixedKey) -> Option<&T> {
        self.table.get(key.slot()).map(|(_, value)| value)
    }

    /// Returns a timer's value; `None` if the timer has been removed.
    pub fn get_mut(&mut self, key: FixedKey) -> Option<&mut T> {
        self.table.get_mut(key.slot()).map(|(_, value)| value)
    }

    /// Returns a timer's class; `None` if the timer has been removed.
    pub fn class_of(&self, key: FixedKey) -> Option<Class> {
        self.table.get(key.slot()).map(|&(class, _)| Class(class))
    }

    /// Returns the number of timers, started or not.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no timers, started or not.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pending timers.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Returns the current time: a reading of the [`Clock`], or, with a [`Clock::manual`], the
    /// latest time that was passed to [`advance`](Self::advance).
    pub fn now(&self) -> Instant {
        self.clock.now().into()
    }

    /// Starts or restarts a timer: it fires when its class's duration has passed since the [current
    /// time](Self::now). Restarting a pending timer costs one store.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn start(&mut self, key: FixedKey) -> Result<(), LocalError> {
        if self.clock.is_read() {
            return self.start_by_clock(key);
        }
        self.start_from(key, self.clock.advanced)
    }

    #[inline(never)]
    fn start_by_clock(&mut self, key: FixedKey) -> Result<(), LocalError> {
        self.start_from(key, self.clock.now())
    }

    #[inline]
    fn start_from(&mut self, key: FixedKey, now: Ns) -> Result<(), LocalError> {
        let record = self.table.records.find_mut(key.slot()).ok_or(LocalError::NoSuchTimer)?;
        if !record.is_pending() {
            self.pending += 1;
        }
        if record.is_on_chain() {
            record.time = now;
            record.set_pending();
            return Ok(());
        }
        self.start_slow(key, now)
    }

    /// Starts a timer that is on no chain.
    #[inline(never)]
    fn start_slow(&mut self, key: FixedKey, now: Ns) -> Result<(), LocalError> {
        let class = self.class_of(key).ok_or(LocalError::NoSuchTimer)?;
        self.put(class.0 as usize, key.slot().index, now);
        Ok(())
    }

    /// Cancels a timer. Returns whether it was pending. Costs one store.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn cancel(&mut self, key: FixedKey) -> Result<bool, LocalError> {
        let record = self.table.records.find_mut(key.slot()).ok_or(LocalError::NoSuchTimer)?;
        let pending = record.is_pending();
        record.cancel();
        self.pending -= usize::from(pending);
        Ok(pending)
    }

    /// Returns whether a timer is pending; false if it has been removed.
    pub fn is_pending(&self, key: FixedKey) -> bool {
        self.table.records.find(key.slot()).is_some_and(|record| record.is_pending())
    }

    /// Returns when to call [`advance`](Self::advance) next; `None` if nothing is pending.
    /// The cost is proportional to the number of classes.
    ///
    /// The returned time is possibly in the past. It is never later than the time at which the next
    /// timer is due, but can be earlier: timers of a class that were started close together share a
    /// chain, and a chain counts even if all of its timers have been restarted or cancelled.
    pub fn next_event(&self) -> Option<Instant> {
        if self.pending == 0 {
            return None;
        }
        if !self.chains.is_empty(DUE) {
            return Some(self.clock.advanced.into());
        }
        let due = (0..self.classes.len()).filter_map(|class| Some(self.oldest(class)?.1));
        event(due.min().unwrap_or(Ns::NEVER))
    }

    /// Sets the current time and calls `fire` for each timer that is due. Returns how many fired.
    ///
    /// A time before that of the last advance counts as that time. The callback can start, cancel,
    /// insert and remove any timers, and change classes.
    pub fn advance(&mut self, now: Instant, fire: impl FnMut(&mut Self, FixedKey)) -> usize {
        self.advance_at_most(now, usize::MAX, fire)
    }

    /// Like [`advance`](Self::advance), but examines no more than `budget` timers. The remaining
    /// ones fire first with the next advance, and can still be restarted and cancelled.
    pub fn advance_at_most(
        &mut self,
        now: Instant,
        budget: usize,
        mut fire: impl FnMut(&mut Self, FixedKey),
    ) -> usize {
        self.clock.advance(now.to_ns());
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
                fire(self, FixedKey(Key::of_coarse(self.table.records.key_of(slot))));
            }
        }
        fired
    }

    /// Handles a timer that has been taken off the chain [`DUE`]. Returns whether it fires; a timer
    /// that was restarted is moved to the chain of the span in which it was restarted.
    fn is_due(&mut self, slot: u32) -> bool {
        let due = self.classes.get(self.due).map_or(Ns::ZERO, |class| class.scaled);
        let Some(record) = self.table.records.record(slot) else { return false };
        if !record.is_pending() {
            record.rest();
            return false;
        }
        let stamp = record.time;
        if stamp.after(due) <= self.clock.advanced {
            record.rest();
            self.pending -= 1;
            return true;
        }
        self.put(self.due, slot, stamp);
        false
    }

    /// Puts a timer that was started at the time `stamp` on the chain of the span that contains it.
    fn put(&mut self, class: usize, slot: u32, stamp: Ns) {
        // A class with timers on `DUE`, the chain of due timers, does not count as empty. These
        // timers possibly have to be put back on the chains of earlier spans than this timer's, so
        // the class's first span must not move beyond those spans.
        let is_empty =
            self.oldest(class).is_none() && (self.due != class || self.chains.is_empty(DUE));
        let Some(state) = self.classes.get_mut(class) else { return };
        if is_empty {
            state.fit_spans(stamp);
            state.first = state.first.max(stamp.0 / state.span);
        }
        let span = stamp.0 / state.span;
        if span < state.first {
            state.oldest_misplaced = state.oldest_misplaced.min(stamp);
        }
        let span = span.clamp(state.first, state.first + SPANS as u64 - 1);
        let place = self.chains.push(chain_of(class, span), slot, &mut self.table.records);
        if let Some(record) = self.table.records.record(slot) {
            record.arm(stamp, 0, place);
        }
    }

    /// Returns the earliest span (of start times) in which a class has timers, and when that span
    /// comes due. Each span has a chain; a bit in `occupied` marks the chains that have timers.
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
        if !state.spans_fit() {
            return Some((span, self.clock.advanced));
        }
        let misplaced = match state.oldest_misplaced {
            Ns::NEVER => Ns::NEVER,
            stamp => stamp.after(state.scaled),
        };
        Some((span, state.due_at(span).min(misplaced)))
    }

    /// Finds the next class that has spans of start times which have come due, and moves their
    /// timers to the chain [`DUE`]. Returns whether there is such a class.
    #[cold]
    fn collect(&mut self) -> bool {
        (0..self.classes.len()).any(|class| {
            let mut any = false;
            while let Some((span, due)) = self.oldest(class) {
                if due > self.clock.advanced {
                    break;
                }
                self.classes[class].first = span + 1;
                // If timers on `DUE` are not due after all, and `put` adds them to the chain of a
                // later span than their own, `put` sets this field again.
                self.classes[class].oldest_misplaced = Ns::NEVER;
                self.chains.splice(chain_of(class, span), DUE);
                any = true;
            }
            if any {
                self.due = class;
                let state = &mut self.classes[class];
                // All timers that are not due were started after the time `oldest`.
                let oldest = self.clock.advanced.since(state.scaled);
                state.fit_spans(oldest);
                state.first = state.first.max(oldest.0 / state.span);
            }
            any
        })
    }
}

fn chain_of(class: usize, span: u64) -> usize {
    (class + 1) * SPANS + span as usize % SPANS
}

// This module is at the end of the file, so the documentation lists its methods after those above.
mod class;
