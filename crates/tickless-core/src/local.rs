//! One base, one thread, no locks: timers to be embedded in an event loop.
//!
//! The loop asks when the next timer is due, waits that long for its own events, tells the
//! timers the time, and is handed the keys of those that fire:
//!
//! ```
//! use core::time::Duration;
//! use tickless_core::{local::LocalTimers, time::Ns};
//!
//! let mut now = Ns::ZERO; // whatever clock the loop has
//! let mut timers = LocalTimers::new(now);
//! let idle = timers.insert("connection 7")?;
//! timers.start(idle, Duration::from_secs(30))?;
//! timers.start(idle, Duration::from_secs(40))?; // it said something: push the timeout out
//!
//! let mut fired = Vec::new();
//! while timers.next_event() != Ns::NEVER {
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

use crate::link::{QueueLink, Slab, SlotKey, WheelLink};
use crate::queues::wheel::{PushOut, Wakes, Wheel};
use crate::queues::windows::Ranged;
use crate::state::Lane;
use crate::time::{Ns, Tick, Window};
use core::fmt;
use core::time::Duration;

/// Names a timer of one [`LocalTimers`]. Once the timer has been removed the key finds nothing.
/// One word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(
    /// The slot's generation, and in the low half its number and, for a high-resolution timer,
    /// [`PRECISE`]. One number, so that a result with a key in it is returned in registers.
    u64,
);

/// Slots have numbers below this.
const PRECISE: u32 = Slab::<WheelLink, ()>::SLOTS_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Family {
    Coarse,
    Precise,
}

impl Key {
    #[inline]
    fn new(slot: SlotKey, family: Family) -> Key {
        let family = match family {
            Family::Coarse => 0,
            Family::Precise => PRECISE,
        };
        Key(u64::from(slot.generation) << 32 | u64::from(slot.index | family))
    }

    /// The key as one number, for who can keep nothing else. Never 0.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The key that this number came from. Any other number finds nothing, or another timer.
    #[inline]
    pub fn from_bits(bits: u64) -> Key {
        Key(bits)
    }

    #[inline]
    fn family(self) -> Family {
        if self.0 as u32 & PRECISE == 0 { Family::Coarse } else { Family::Precise }
    }

    #[inline]
    fn slot(self) -> SlotKey {
        SlotKey { index: self.0 as u32 & !PRECISE, generation: (self.0 >> 32) as u32 }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlotKey { index, generation } = self.slot();
        write!(f, "{:?}#{index}.{generation}", self.family())
    }
}

/// What can go wrong with local timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalError {
    /// The key's timer has been removed, or the key is another table's.
    NoSuchTimer(Key),
    /// There are 2^31 timers of its kind already.
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
    wheel: Wheel,
    ranged: Ranged,
    coarse: Slab<WheelLink, T>,
    precise: Slab<QueueLink, Precise<T>>,
    now: Ns,
}

/// What belongs to a high-resolution timer.
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
    pub fn new(now: Ns) -> LocalTimers<T> {
        LocalTimers::with(now, Tick::default(), PushOut::default())
    }

    /// No timers, with a tick and a way to push out of your choice.
    pub fn with(now: Ns, tick: Tick, push_out: PushOut) -> LocalTimers<T> {
        LocalTimers {
            wheel: Wheel::new(tick, push_out, now),
            ranged: Ranged::new(),
            coarse: Slab::new(),
            precise: Slab::new(),
            now,
        }
    }

    /// Makes room for a coarse timer, not armed: for timeouts, which are mostly cancelled.
    /// Fires never early, and late by at most an eighth of its distance plus a tick.
    pub fn insert(&mut self, value: T) -> Result<Key, LocalError> {
        let slot = self.coarse.insert(value).ok_or(LocalError::Full)?;
        Ok(Key::new(slot, Family::Coarse))
    }

    /// Makes room for a high-resolution timer, not armed. Arming costs O(log n).
    pub fn insert_precise(&mut self, value: T) -> Result<Key, LocalError> {
        let value = Precise { value, lane: Lane::Queued };
        let slot = self.precise.insert(value).ok_or(LocalError::Full)?;
        Ok(Key::new(slot, Family::Precise))
    }

    /// Cancels a timer and gives its value back.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.cancel(key).ok()?;
        match key.family() {
            Family::Coarse => self.coarse.remove(key.slot()),
            Family::Precise => self.precise.remove(key.slot()).map(|precise| precise.value),
        }
    }

    /// A timer's value.
    pub fn value(&mut self, key: Key) -> Option<&mut T> {
        match key.family() {
            Family::Coarse => self.coarse.value(key.slot()),
            Family::Precise => self.precise.value(key.slot()).map(|precise| &mut precise.value),
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
        self.wheel.len() + self.ranged.len()
    }

    /// What the last advance said.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Arms a timer, or arms it anew, to fire `after` the present.
    #[inline]
    pub fn start(&mut self, key: Key, after: Duration) -> Result<(), LocalError> {
        self.start_at(key, self.now.after(Ns::from_duration(after)))
    }

    /// Arms a timer, or arms it anew. A deadline that has passed fires with the next advance.
    #[inline]
    pub fn start_at(&mut self, key: Key, deadline: Ns) -> Result<(), LocalError> {
        if key.family() == Family::Precise {
            return self.start_precise(key, Window::new(deadline, deadline));
        }
        self.start_coarse(key, deadline)
    }

    /// Arms a timer to fire anywhere between `soft` and `hard`: a high-resolution timer causes
    /// no wakeup of its own before `hard`. A coarse one takes `soft` as its deadline.
    #[inline]
    pub fn start_range(&mut self, key: Key, window: Window) -> Result<(), LocalError> {
        if key.family() == Family::Precise {
            return self.start_precise(key, window);
        }
        self.start_coarse(key, window.soft)
    }

    fn start_coarse(&mut self, key: Key, deadline: Ns) -> Result<(), LocalError> {
        let node = self.coarse.node(key.slot()).ok_or(LocalError::NoSuchTimer(key))?;
        self.wheel.arm(node, deadline, self.now, Wakes::Yes);
        Ok(())
    }

    /// Apart, so that the coarse path, which goes into its caller, is short.
    #[inline(never)]
    fn start_precise(&mut self, key: Key, window: Window) -> Result<(), LocalError> {
        let both = self.precise.both(key.slot());
        let (node, precise) = both.ok_or(LocalError::NoSuchTimer(key))?;
        if node.is_linked() {
            self.ranged.remove(node, precise.lane);
        }
        precise.lane = self.ranged.insert(node, window);
        Ok(())
    }

    /// Cancels a timer. Says whether it was pending.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Result<bool, LocalError> {
        if key.family() == Family::Precise {
            return self.cancel_precise(key);
        }
        let node = self.coarse.node(key.slot()).ok_or(LocalError::NoSuchTimer(key))?;
        let pending = node.is_linked();
        if pending {
            self.wheel.cancel(node);
        }
        Ok(pending)
    }

    #[inline(never)]
    fn cancel_precise(&mut self, key: Key) -> Result<bool, LocalError> {
        let both = self.precise.both(key.slot());
        let (node, precise) = both.ok_or(LocalError::NoSuchTimer(key))?;
        let pending = node.is_linked();
        if pending {
            self.ranged.remove(node, precise.lane);
        }
        Ok(pending)
    }

    /// Is the timer pending?
    pub fn is_pending(&mut self, key: Key) -> bool {
        match key.family() {
            Family::Coarse => self.coarse.node(key.slot()).is_some_and(|node| node.is_linked()),
            Family::Precise => self.precise.node(key.slot()).is_some_and(|node| node.is_linked()),
        }
    }

    /// When to advance next; [`Ns::NEVER`] if nothing is pending. May have passed.
    pub fn next_event(&self) -> Ns {
        self.wheel.next_event().min(self.ranged.first().map_or(Ns::NEVER, |window| window.hard))
    }

    /// Tells the timers the time and calls `fire` for each one that is due. Returns how many
    /// fired. The callback may do anything with the timers: arm, cancel, insert, remove.
    ///
    /// What it arms for the past fires with the next advance, so this ends.
    pub fn advance(&mut self, now: Ns, mut fire: impl FnMut(&mut Self, Key)) -> usize {
        self.advance_at_most(now, usize::MAX, &mut fire)
    }

    /// The same, but looks at no more than `budget` timers (W2). What is left is first in line
    /// next time, and can still be cancelled; [`next_event`](Self::next_event) says "now".
    pub fn advance_at_most(
        &mut self,
        now: Ns,
        mut budget: usize,
        mut fire: impl FnMut(&mut Self, Key),
    ) -> usize {
        self.now = self.now.max(now);
        let mut fired = 0;
        // Both passes begin here: what one family's callbacks arm of the other waits as well.
        self.wheel.advance(self.now);
        let slots = &mut self.precise;
        self.ranged.begin_pass(self.now, |node| {
            let slot = slots.key_of(node);
            if let Some(precise) = slots.value(slot) {
                precise.lane = Lane::Queued;
            }
        });
        while budget > 0
            && let Some(node) = self.ranged.pop()
        {
            budget -= 1;
            fired += 1;
            let key = Key::new(self.precise.key_of(node), Family::Precise);
            fire(self, key);
        }
        while let Some(node) = self.wheel.pop(&mut budget) {
            fired += 1;
            let key = Key::new(self.coarse.key_of(node), Family::Coarse);
            fire(self, key);
        }
        fired
    }
}
