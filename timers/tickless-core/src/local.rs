//! Timers for one thread, without locks, to be embedded in an event loop. Arming, re-arming and
//! cancelling do not allocate. Arming for a duration reads the [`Clock`] that the timers were made
//! with, if it can be read; nothing else does.
//!
//! # Guarantees
//!
//! - A timer never fires early: a duration counts from the call, or with a [`Clock::manual`] from
//!   the last [`advance`](LocalTimers::advance). A coarse timer is late by at most 13 % of the time
//!   from the advance before its arming to its deadline, plus a tick. A precise timer fires with
//!   the first advance after its deadline.
//! - Timers that come due at the same instant fire in the order in which they were armed. Among
//!   them, a timer that was pushed out, or cancelled and armed again, fires at any position.
//! - [`next_event`](LocalTimers::next_event) is never late. It is early where all timers of a
//!   bucket, a list of timers that come due together, were pushed out or cancelled: an advance at
//!   that time moves these timers and fires nothing. A timer beyond the last level of the wheel, 12
//!   days with a tick of 1 ms, causes a wakeup every 12 days in any case.
//! - With [`PushOut::Eager`] the order is exact, the next event is exact within these 12 days, and
//!   every arming moves its timer.
//! - Deadlines are 64-bit nanoseconds. At no distance does a timer fire early or get lost.
//!
//! # Layout
//!
//! A timer is a record of 16 bytes in one array, indexed by the number in its key: deadline,
//! generation and level, and its position in a bucket. Values are in a separate array. A bucket is
//! a chain of cache lines of slot numbers (`chains.rs`).
//!
//! - **Pushing out** stores the new deadline and accesses nothing but the record, if the timer's
//!   bucket is fine enough for the new distance. The timer moves when that bucket comes due.
//! - **An earlier deadline** is stored in the same way if the bucket comes due early enough for it,
//!   which is recorded for each chunk of a chain.
//! - **Cancelling** stores the record's state. The number stays in its bucket until the bucket
//!   comes due. A timer's number is in at most one bucket, which bounds the garbage.
//! - **Expiry** reads fourteen numbers from a cache line, and prefetches the records and values of
//!   the second line after it before it fires the first timer.
//! - **Precise timers** have a table of their own, and binary heaps of slot numbers (`precise.rs`).

mod chains;
mod clock;
mod fixed;
pub mod future;
mod key;
mod precise;
mod table;
mod wheel;

pub use clock::Clock;
pub use fixed::{Class, FixedKey, FixedTimeouts};
pub use key::Key;

use crate::queues::wheel::PushOut;
use crate::time::{Instant, Ns, Tick, Window};
use core::fmt;
use core::time::Duration;
use precise::PreciseHeap;
use table::Table;
use wheel::LocalWheel;

/// An error of [`LocalTimers`] and [`FixedTimeouts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LocalError {
    /// The timer has been removed, or its key belongs to another set of timers.
    NoSuchTimer,
    /// The class (a group of timers with one duration) belongs to another set of timers.
    NoSuchClass,
    /// There is no room: there are 2^29 coarse timers, 2^29 precise timers or 2^16 classes already.
    Full,
    /// The factor for the duration of a class is negative, infinite or not a number.
    BadFactor,
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LocalError::NoSuchTimer => {
                "there is no timer with this key here; it has been removed, or is another's"
            }
            LocalError::NoSuchClass => "there is no such class here; add it first",
            LocalError::Full => "the table of timers is full; remove some first",
            LocalError::BadFactor => "a duration cannot be scaled by this; use a number from 0 on",
        })
    }
}

impl core::error::Error for LocalError {}

/// Timers for one thread, each with a value of type `T`: see the [module](self).
pub struct LocalTimers<T> {
    clock: Clock,
    coarse: Table<T>,
    wheel: LocalWheel,
    precise: Table<T>,
    heap: PreciseHeap,
}

impl<T> fmt::Debug for LocalTimers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalTimers")
            .field("timers", &self.len())
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

impl<T> LocalTimers<T> {
    /// Returns a set without timers, with a tick of 1 ms. A timer that is armed again for a later
    /// time stays in its bucket until the bucket comes due (lazy push-out).
    pub fn new(clock: Clock) -> LocalTimers<T> {
        LocalTimers::with_tick(clock, Tick::default())
    }

    /// Returns a set without timers, with this tick.
    pub fn with_tick(clock: Clock, tick: Tick) -> LocalTimers<T> {
        LocalTimers::with_push_out(clock, tick, PushOut::default())
    }

    /// Returns a set that pushes timers out lazily or eagerly, for this project's measurements.
    #[doc(hidden)]
    pub fn with_push_out(clock: Clock, tick: Tick, push_out: PushOut) -> LocalTimers<T> {
        LocalTimers {
            clock,
            coarse: Table::new(),
            wheel: LocalWheel::new(tick, push_out, clock.advanced),
            precise: Table::new(),
            heap: PreciseHeap::new(),
        }
    }

    /// Allocates room for this many more coarse timers.
    pub fn reserve(&mut self, timers: usize) {
        self.coarse.reserve(timers);
        self.wheel.reserve(self.coarse.capacity());
    }

    /// Adds a coarse timer without arming it: for timeouts, which are mostly cancelled. It never
    /// fires early, and is late by at most 13 % of the time from arming to deadline, plus a tick.
    ///
    /// O(1). When the table is full it grows by an eighth; arming and cancelling never allocate.
    ///
    /// # Errors
    ///
    /// [`LocalError::Full`] if there are 2^29 coarse timers.
    #[inline]
    pub fn insert(&mut self, value: T) -> Result<Key, LocalError> {
        let room = self.coarse.capacity();
        let slot = self.coarse.insert(value).ok_or(LocalError::Full)?;
        if self.coarse.capacity() != room {
            self.wheel.reserve(self.coarse.capacity());
        }
        Ok(Key::of_coarse(slot))
    }

    /// Adds a precise timer without arming it. The timer fires with the first advance after its
    /// deadline. Arming and cancelling it cost O(log n).
    ///
    /// When the table is full it grows by an eighth; arming and cancelling never allocate.
    ///
    /// # Errors
    ///
    /// [`LocalError::Full`] if there are 2^29 precise timers.
    pub fn insert_precise(&mut self, value: T) -> Result<Key, LocalError> {
        let slot = self.precise.insert(value).ok_or(LocalError::Full)?;
        self.heap.reserve(self.precise.capacity());
        Ok(Key::of_precise(slot))
    }

    /// Cancels a timer, removes it, and returns its value. `None` if it has been removed already.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.cancel(key).ok()?;
        if key.is_precise() {
            return self.precise.remove(key.precise());
        }
        self.wheel.detach(&mut self.coarse.records, key.coarse().index);
        self.coarse.remove(key.coarse())
    }

    /// Returns a timer's value; `None` if the timer has been removed.
    pub fn get(&self, key: Key) -> Option<&T> {
        if key.is_precise() {
            return self.precise.get(key.precise());
        }
        self.coarse.get(key.coarse())
    }

    /// Returns a timer's value; `None` if the timer has been removed.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = key.coarse();
        if self.coarse.records.find_mut(slot).is_none() {
            return self.precise.get_mut(key.precise());
        }
        self.coarse.value_at(slot.index)
    }

    /// Returns the number of timers, armed or not.
    pub fn len(&self) -> usize {
        self.coarse.len() + self.precise.len()
    }

    /// Returns whether there are no timers, armed or not.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pending timers.
    pub fn pending(&self) -> usize {
        self.wheel.pending() + self.heap.pending()
    }

    /// Returns the current time: a reading of the [`Clock`], or, with a [`Clock::manual`], the
    /// latest time that was passed to [`advance`](Self::advance).
    pub fn now(&self) -> Instant {
        self.clock.now().into()
    }

    /// Arms a timer, pending or not, to fire `after` the [current time](Self::now). O(log n) for a
    /// precise timer, O(1) for a coarse one, and one store to arm that again for a later time.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn start(&mut self, key: Key, after: Duration) -> Result<(), LocalError> {
        if self.clock.is_read() {
            return self.start_by_clock(key, after);
        }
        self.start_from(key, self.clock.advanced, after)
    }

    #[inline(never)]
    fn start_by_clock(&mut self, key: Key, after: Duration) -> Result<(), LocalError> {
        self.start_from(key, self.clock.now(), after)
    }

    #[inline]
    fn start_from(&mut self, key: Key, now: Ns, after: Duration) -> Result<(), LocalError> {
        self.start_for(key, now, Ns::from_duration(after))
    }

    /// As [`start`](Self::start), for the C interface, whose durations are in nanoseconds.
    #[doc(hidden)]
    #[inline]
    pub fn start_ns(&mut self, key: Key, after_ns: u64) -> Result<(), LocalError> {
        if self.clock.is_read() {
            return self.start_ns_by_clock(key, after_ns);
        }
        self.start_for(key, self.clock.advanced, Ns(after_ns))
    }

    #[inline(never)]
    fn start_ns_by_clock(&mut self, key: Key, after_ns: u64) -> Result<(), LocalError> {
        self.start_for(key, self.clock.now(), Ns(after_ns))
    }

    #[inline]
    fn start_for(&mut self, key: Key, now: Ns, distance: Ns) -> Result<(), LocalError> {
        match now.0.checked_add(distance.0) {
            Some(deadline) => self.start_in(key, Ns(deadline), distance),
            None => self.start_slow(key, Window { soft: Ns::NEVER, hard: Ns::NEVER }),
        }
    }

    /// Arms a timer, pending or not, for a deadline. If the deadline has passed, the timer fires
    /// with the next advance, or with the current one if that has put it in line to fire already.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn start_at(&mut self, key: Key, deadline: Instant) -> Result<(), LocalError> {
        let deadline = deadline.to_ns();
        self.start_in(key, deadline, deadline.since(self.clock.advanced))
    }

    /// Arms a timer for a deadline, `distance` from now; leaves it in its bucket if it can.
    #[inline]
    fn start_in(&mut self, key: Key, deadline: Ns, distance: Ns) -> Result<(), LocalError> {
        let slot = key.coarse();
        if let Some(record) = self.coarse.records.record(slot.index) {
            if self.wheel.push_out(record, slot.generation, deadline, distance) {
                return Ok(());
            }
        }
        self.start_slow(key, Window::at(deadline))
    }

    /// Arms a timer, pending or not, to fire anywhere between `soft` and `hard`: a precise timer
    /// makes the event loop wake at `hard`, but fires earlier if something else wakes the loop
    /// after `soft`. For a coarse timer `soft` is the deadline.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn start_range(
        &mut self,
        key: Key,
        soft: Instant,
        hard: Instant,
    ) -> Result<(), LocalError> {
        if key.is_precise() {
            return self.start_slow(key, Window::new(soft.to_ns(), hard.to_ns()));
        }
        self.start_at(key, soft)
    }

    /// Arms a timer of either kind, by moving it to the list or heap of its new deadline.
    #[cold]
    #[inline(never)]
    fn start_slow(&mut self, key: Key, window: Window) -> Result<(), LocalError> {
        if key.is_precise() {
            let slot = key.precise();
            self.precise.records.find_mut(slot).ok_or(LocalError::NoSuchTimer)?;
            self.heap.arm(&mut self.precise.records, slot.index, window);
        } else {
            let slot = key.coarse();
            self.coarse.records.find_mut(slot).ok_or(LocalError::NoSuchTimer)?;
            self.wheel.arm(&mut self.coarse.records, slot.index, window.soft);
        }
        Ok(())
    }

    /// Cancels a timer. Returns whether it was pending. O(1) for a coarse timer, without access to
    /// other timers; O(log n) for a precise one.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`].
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Result<bool, LocalError> {
        match self.cancel_usual(key) {
            Some(was_pending) => Ok(was_pending),
            None => self.cancel_unusual(key),
        }
    }

    /// Cancels a timer as [`cancel`](Self::cancel) does, if that only changes the timer's record.
    /// Otherwise returns `None` and changes nothing: call [`cancel`](Self::cancel) then. For
    /// callers in which another call would cost registers.
    #[doc(hidden)]
    #[inline(always)]
    pub fn cancel_usual(&mut self, key: Key) -> Option<bool> {
        let slot = key.coarse();
        let record = self.coarse.records.find_mut(slot)?;
        if !record.is_pending() {
            return Some(false);
        }
        self.wheel.cancel_usual(record).then_some(true)
    }

    #[inline(never)]
    fn cancel_unusual(&mut self, key: Key) -> Result<bool, LocalError> {
        let slot = key.coarse();
        if self.coarse.records.find_mut(slot).is_some() {
            self.wheel.detach(&mut self.coarse.records, slot.index);
            return Ok(true);
        }
        self.precise.records.find_mut(key.precise()).ok_or(LocalError::NoSuchTimer)?;
        Ok(self.heap.cancel(&mut self.precise.records, key.precise().index))
    }

    /// Returns whether a timer is pending; false if it has been removed.
    pub fn is_pending(&self, key: Key) -> bool {
        let record = if key.is_precise() {
            self.precise.records.find(key.precise())
        } else {
            self.coarse.records.find(key.coarse())
        };
        record.is_some_and(|record| record.is_pending())
    }
}

// These modules are at the end of the file, so that the documentation lists their methods after
// those above.
mod advance;
