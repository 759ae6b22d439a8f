//! One base, one thread, no locks: timers to be embedded in an event loop.
//!
//! The loop asks when the next timer is due, waits that long for its own events, tells the
//! timers the time, and is handed the keys of those that fire:
//!
//! ```
//! use core::time::Duration;
//! use tickless_core::{local::LocalTimers, time::Instant};
//!
//! let mut now = Instant::ZERO; // whatever clock the loop has
//! let mut timers = LocalTimers::new(now);
//! let idle = timers.insert("connection 7")?;
//! timers.start(idle, Duration::from_secs(30))?;
//! timers.start(idle, Duration::from_secs(40))?; // it said something: push the timeout out
//!
//! let mut fired = Vec::new();
//! while timers.next_event() != Instant::NEVER {
//!     now = timers.next_event(); // here the loop would wait
//!     timers.advance(now, |timers, key| fired.extend(timers.value(key).copied()));
//! }
//! assert_eq!(fired, ["connection 7"]);
//! # Ok::<(), tickless_core::local::LocalError>(())
//! ```
//!
//! Arming, re-arming, cancelling: no allocation, no system call, no clock. The present is what
//! the last [`advance`](LocalTimers::advance) said, as in most event loops; a loop that slept
//! for long advances first.
//!
//! A loop that handles a batch of events arms, cancels and takes what fires in batches too:
//! [`start_many`](LocalTimers::start_many), [`cancel_many`](LocalTimers::cancel_many),
//! [`advance_into`](LocalTimers::advance_into). They fetch from memory ahead of their work.
//!
//! Timeouts that are all of one duration, or of a few, are cheaper still in [`FixedTimeouts`].
//!
//! # Guarantees
//!
//! - A timer never fires early. A coarse one is late by at most 13 % of its distance when it was
//!   armed, plus a tick; a precise one fires with the first advance after its deadline.
//! - Timers that come due at one instant fire in the order in which they were armed. One that was
//!   armed again since it last fired, pushed out or after a cancel, has its turn anywhere among
//!   them.
//! - [`next_event`](LocalTimers::next_event) is never late. It is early where every timer of a
//!   bucket was pushed out or cancelled: that advance moves them and fires nothing, which
//!   [`idle_wakeups`](LocalTimers::idle_wakeups) counts.
//!   [`settled_next_event`](LocalTimers::settled_next_event) is exact, for a little more work.
//!   A timer beyond the last level of the wheel, 12 days with a tick of 1 ms, is looked at every 12
//!   days all the same.
//! - With [`PushOut::Eager`] order is exact, so is the next event within these 12 days, and every
//!   arming moves its timer.
//! - Deadlines are 64-bit nanoseconds; there is no distance beyond which a timer fires early or is
//!   lost.
//!
//! # Layout
//!
//! A timer is a record of 16 bytes in one array, found by the number in its key: deadline,
//! generation and level, and where its number lies in a bucket. Values are in an array of their
//! own. A bucket is a chain of cache lines of slot numbers (`chains.rs`).
//!
//! - **Pushing out** stores the new deadline and touches nothing but the record: the bucket comes
//!   due no later than before, and then the timer goes where it belongs. The record's level says
//!   whether that bucket is fine enough for the new distance; if not, the timer moves at once.
//! - **A deadline earlier than the one before** is stored in the same way while the bucket comes
//!   due early enough for it, which is known of each chunk of a chain. So a timer that is armed and
//!   cancelled at random stays in the earliest of its buckets, and moves ever more rarely.
//! - **Cancelling** stores the record's state. The number stays in its bucket until that comes due,
//!   and a timer that is armed again before then is pushed out as above. A timer's number is in one
//!   bucket at most, so that garbage is bounded; and what else makes holes is merged.
//! - **Expiry** reads fourteen numbers from a line, and asks for the records and values of those
//!   two lines on before it fires the first.
//!
//! # Candidates
//!
//! ns per operation, medians of five runs in turn on a busy VM of two CPUs (AMD EPYC, family 26);
//! in brackets instructions, the loop of the harness (about 18) and the handles' table included.
//! "Nodes" is what was here before: nodes of 64 bytes in lists. "Links" is a sketch of records of
//! 24 bytes with 32-bit links, with plain numbers for handles, nothing checked, no values of a
//! type, no budget and no callbacks. "No fetch" is this code without the prefetch instruction, the
//! one line of it that needs `unsafe`, beside the values. "Eager" is this code with
//! [`PushOut::Eager`]. The heap is `std`'s with lazy deletion.
//!
//! | operation | pending | nodes | links | no fetch | eager | this | heap |
//! |---|--:|--:|--:|--:|--:|--:|--:|
//! | push out by chance | 1k | 9.1 (200) | 1.4 (28) | 1.7 | 14 (244) | 1.7 (46) | 19 (135) |
//! | | 100k | 115 | 11 | 20 | 107 | 20 | 40 |
//! | | 1M | 228 | 19 | 50 | 217 | 49 | 82 |
//! | arm + cancel, one timer | 1k | 13 (243) | 5.1 (122) | 11 | 16 (253) | 11 (171) | 20 (141) |
//! | | 1M | 13 | 5.1 | 11 | 17 | 11 | 57 |
//! | cancel + arm, by chance | 1k | 17 (255) | 5.6 (129) | 16 | 24 (284) | 15 (187) | 20 (141) |
//! | | 100k | 140 | 15 | 112 | 169 | 115 | 44 |
//! | | 1M | 281 | 68 | 187 | 295 | 188 | 87 |
//! | expire, per timer | 1M | 107 (167) | 174 (43) | 56 | 16 | 15 (105) | 584 |
//! | the same, keys only | 1M | | | 30 | 14 | 14 (48) | |
//! | bytes, with value and handle | 1M | 72 | 32 | | | 38 | 32 |
//!
//! - **Links** are ahead wherever nothing expires, in part because the sketch has no keys to look
//!   up; but expiry follows them one miss after another, and a list cannot be read ahead.
//! - Bytes are resident ones; value and handle take 8 each.
//! - **Chunks without the fetch** already overlap fourteen misses, as far as the CPU looks ahead.
//! - **A cancel that takes the number out** ("eager") costs the chunk's miss, and the next arming
//!   another.
//! - The deadlines of "arm + cancel" are by chance within ten minutes.
//! - The table is older than three things. In instructions, without the harness: a key and its
//!   timer's level checked at once (push-out to a point 28 -> 24, by a duration 38 -> 30); an
//!   earlier deadline stored where the bucket is early enough (arm + cancel by chance 201 -> 78);
//!   expiry by chunks (87 -> 60, keys only 39 -> 29). What expiry waits for is memory all the same:
//!   one line of records for each timer, in the order of deadlines.

mod chains;
mod fixed;
mod key;
mod table;
mod wheel;

pub use fixed::{Class, FixedError, FixedTimeouts};
pub use key::Key;

use crate::link::{QueueLink, Slab};
use crate::queues::wheel::PushOut;
use crate::queues::windows::PreciseQueue;
use crate::state::Lane;
use crate::time::{Instant, Ns, Tick, Window};
use core::fmt;
use core::time::Duration;
use key::Family;
use table::Table;
use wheel::Wheel;

/// What can go wrong with local timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LocalError {
    /// The key's timer has been removed, or the key is another table's.
    NoSuchTimer(Key),
    /// There are 2^29 coarse timers already, or 2^31 precise ones.
    Full,
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalError::NoSuchTimer(key) => {
                write!(f, "there is no timer {key:?} here; it has been removed, or is another's")
            }
            LocalError::Full => f.write_str("the table of timers is full; remove some first"),
        }
    }
}

impl core::error::Error for LocalError {}

/// Timers for one thread, each with a value of type `T`.
pub struct LocalTimers<T> {
    now: Ns,
    coarse: Table<T>,
    wheel: Wheel,
    queue: PreciseQueue,
    precise: Slab<QueueLink, Precise<T>>,
    idle_wakeups: u64,
}

/// What belongs to a precise timer.
struct Precise<T> {
    value: T,
    /// Where it is while it is pending.
    lane: Lane,
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
    /// No timers, with a tick of 1 ms and lazy push-out.
    pub fn new(now: Instant) -> LocalTimers<T> {
        LocalTimers::with_tick(now, Tick::default(), PushOut::default())
    }

    /// No timers, with a tick and a way to push out of your choice.
    pub fn with_tick(now: Instant, tick: Tick, push_out: PushOut) -> LocalTimers<T> {
        LocalTimers {
            now: now.into(),
            coarse: Table::new(),
            wheel: Wheel::new(tick, push_out, now.into()),
            queue: PreciseQueue::new(),
            precise: Slab::new(),
            idle_wakeups: 0,
        }
    }

    /// Makes room for so many coarse timers more: [`insert`](Self::insert) allocates nothing until
    /// they are there.
    pub fn reserve(&mut self, timers: usize) {
        self.coarse.reserve(timers);
        self.wheel.reserve(self.coarse.capacity());
    }

    /// Makes room for a coarse timer, not armed: for timeouts, which are mostly cancelled.
    /// Never fires early, and late by at most 13 % of its distance plus a tick.
    ///
    /// O(1). Allocates now and then, an eighth more than there was; arming and cancelling never
    /// do.
    ///
    /// # Errors
    ///
    /// [`LocalError::Full`] if there are as many timers as there can be.
    #[inline]
    pub fn insert(&mut self, value: T) -> Result<Key, LocalError> {
        let room = self.coarse.capacity();
        let slot = self.coarse.insert(value).ok_or(LocalError::Full)?;
        if self.coarse.capacity() != room {
            self.wheel.reserve(self.coarse.capacity());
        }
        Ok(Key::new(slot, Family::Coarse))
    }

    /// Makes room for a precise timer, not armed. Arming costs O(log n).
    ///
    /// # Errors
    ///
    /// [`LocalError::Full`] if there are as many timers as there can be.
    pub fn insert_precise(&mut self, value: T) -> Result<Key, LocalError> {
        let value = Precise { value, lane: Lane::Queued };
        let slot = self.precise.insert(value).ok_or(LocalError::Full)?;
        Ok(Key::new(slot, Family::Precise))
    }

    /// Cancels a timer and gives its value back.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.cancel(key).ok()?;
        match key.family() {
            Family::Coarse => {
                self.wheel.detach(&mut self.coarse.records, key.coarse().index);
                self.coarse.remove(key.coarse())
            }
            Family::Precise => self.precise.remove(key.precise()).map(|precise| precise.value),
        }
    }

    /// A timer's value.
    #[inline]
    pub fn value(&mut self, key: Key) -> Option<&mut T> {
        match key.family() {
            Family::Coarse => self.coarse.value(key.coarse()),
            Family::Precise => self.precise.value(key.precise()).map(|own| &mut own.value),
        }
    }

    /// How many timers there are, armed or not.
    pub fn len(&self) -> usize {
        self.coarse.len() + self.precise.len()
    }

    /// Is there no timer at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers are pending.
    pub fn pending(&self) -> usize {
        self.wheel.pending() + self.queue.len()
    }

    /// What the last advance said.
    pub fn now(&self) -> Instant {
        self.now.into()
    }

    /// Arms a timer, or arms it anew, to fire `after` the present. O(1), and for a pending coarse
    /// timer that is pushed out one store.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn start(&mut self, key: Key, after: Duration) -> Result<(), LocalError> {
        let distance = Ns::from_duration(after);
        match self.now.0.checked_add(distance.0) {
            Some(deadline) => self.start_in(key, Ns(deadline), distance),
            None => self.start_anew(key, Window { soft: Ns::NEVER, hard: Ns::NEVER }),
        }
    }

    /// Arms a timer, or arms it anew. A deadline that has passed fires with the next advance; if
    /// the timer is in line to fire in the present one already, with that.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn start_at(&mut self, key: Key, deadline: Instant) -> Result<(), LocalError> {
        let deadline = Ns::from(deadline);
        self.start_in(key, deadline, deadline.since(self.now))
    }

    /// `distance` is that from the present to the deadline.
    #[inline]
    fn start_in(&mut self, key: Key, deadline: Ns, distance: Ns) -> Result<(), LocalError> {
        let slot = key.coarse();
        if let Some(record) = self.coarse.records.record(slot.index)
            && self.wheel.push_out(record, slot.generation, deadline, distance)
        {
            return Ok(());
        }
        self.start_anew(key, Window { soft: deadline, hard: deadline })
    }

    /// Arms a timer to fire anywhere between `soft` and `hard`: a precise timer causes
    /// no wakeup of its own before `hard`. A coarse one takes `soft` as its deadline.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn start_range(
        &mut self,
        key: Key,
        soft: Instant,
        hard: Instant,
    ) -> Result<(), LocalError> {
        match key.family() {
            Family::Coarse => self.start_at(key, soft),
            Family::Precise => self.start_precise(key, Window::new(soft.into(), hard.into())),
        }
    }

    #[cold]
    #[inline(never)]
    fn start_anew(&mut self, key: Key, window: Window) -> Result<(), LocalError> {
        if key.family() == Family::Precise {
            return self.start_precise(key, window);
        }
        let slot = key.coarse();
        self.coarse.records.find(slot).ok_or(LocalError::NoSuchTimer(key))?;
        self.wheel.arm(&mut self.coarse.records, slot.index, window.soft);
        Ok(())
    }

    fn start_precise(&mut self, key: Key, window: Window) -> Result<(), LocalError> {
        let both = self.precise.both(key.precise());
        let (node, precise) = both.ok_or(LocalError::NoSuchTimer(key))?;
        if node.is_linked() {
            self.queue.remove(node, precise.lane);
        }
        precise.lane = self.queue.insert(node, window);
        Ok(())
    }

    /// Cancels a timer. Returns whether it was pending.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchTimer`] if the timer has been removed, or the key is another table's.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Result<bool, LocalError> {
        let slot = key.coarse();
        let Some(record) = self.coarse.records.find(slot) else {
            return self.cancel_precise(key);
        };
        let pending = record.is_pending();
        if pending {
            self.wheel.cancel(record, slot.index);
        }
        Ok(pending)
    }

    #[inline(never)]
    fn cancel_precise(&mut self, key: Key) -> Result<bool, LocalError> {
        let both = match key.family() {
            Family::Precise => self.precise.both(key.precise()),
            Family::Coarse => None,
        };
        let (node, precise) = both.ok_or(LocalError::NoSuchTimer(key))?;
        let pending = node.is_linked();
        if pending {
            self.queue.remove(node, precise.lane);
        }
        Ok(pending)
    }

    /// Is the timer pending?
    pub fn is_pending(&mut self, key: Key) -> bool {
        match key.family() {
            Family::Coarse => {
                self.coarse.records.find(key.coarse()).is_some_and(|record| record.is_pending())
            }
            Family::Precise => {
                self.precise.node(key.precise()).is_some_and(|node| node.is_linked())
            }
        }
    }
}

// Down here, so that the documentation lists their methods after those above.
mod advance;
mod many;
