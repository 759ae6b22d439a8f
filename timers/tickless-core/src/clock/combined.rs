//! One reader reads a slow shared counter, and the others take its value.
//!
//! Some counters serve one CPU at a time, and each read takes about a microsecond. When all CPUs
//! read the time at once they queue for the counter's device, and every lock under which they read
//! the time is held for the length of the queue. Here, a thread that finds the counter free reads
//! it, and every thread that arrives during that read waits for its value: one read serves all.
//!
//! Use it for PTP hardware clocks, device counters behind a bus, and any `clock_gettime` that is a
//! system call. The combining is no gain for a counter that costs less than a few cache misses, or
//! for one that serves all CPUs at once.
//!
//! # Guarantees
//!
//! `docs/dev/contract.md` has the guarantees, under "Clocks". One atomic word contains the lock,
//! the last published value, and a publish sequence that counts the publications. Waiters wait for
//! the sequence to change rather than the value, so they continue even if the counter has stopped.
//! [`read`](Combined::read) never goes back for any thread, nor across threads that are ordered by
//! happens-before, as long as the counter does not go back: every value that it returns was
//! published, and publications are ordered.
//!
//! # Taking over
//!
//! In a kernel, the holder has its interrupts off. In a program, the holder can lose its CPU while
//! others wait. So a waiter's patience is limited: after a number of checks it takes over the lock,
//! reads the counter itself and publishes. The word identifies each holding, so the publication of
//! a holder that has lost the lock fails, and that holder takes a published value as waiters do. If
//! it returned the value that it read itself, its next call might return a smaller one, which
//! another thread has read earlier and publishes later.
//!
//! # The word
//!
//! | bits | hold |
//! |---|---|
//! | 0 | locked |
//! | 1-2 | takeovers since the last publication |
//! | 3-7 | publish sequence |
//! | 8-63 | the last published value, its lower 56 bits |
//!
//! If the sequence wraps around between two checks of a waiter, the waiter waits for one more
//! publication. For counters of more than 56 bits, a second word stores a full value that is near
//! the published one, from which readers derive the upper bits. For a counter of nanoseconds this
//! word changes once in 208 days, or when the device is set. A reader that sees this starts again.

use crate::clock::counter::Counter;
use crate::word::{Ordering, OwnLine, Relax, Word};

/// How a shared counter is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum ReadPolicy {
    /// Every caller reads the clock's device. This is the behaviour that combined reads replace.
    Direct,
    /// One caller reads the clock's device, and concurrent callers use the value that it has read.
    #[default]
    Combined,
}

/// How many times a waiter calls [`Relax`] for one holder before it takes over the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience(pub u32);

impl Patience {
    /// Waiters never take over the lock: for platforms on which its holder never loses its CPU.
    pub const ENDLESS: Patience = Patience(u32::MAX);
}

/// A counter that one thread at a time reads. Threads that ask for the counter's value during that
/// read get the same value.
#[derive(Debug)]
pub struct Combined<W, C, R> {
    word: OwnLine<W>,
    /// A full value (with all bits) near the published one, from which readers derive the upper
    /// bits. Used only for counters wider than [`VALUE_BITS`]. Written by holders of the lock
    /// before they publish.
    near: OwnLine<W>,
    counter: C,
    relax: R,
    policy: ReadPolicy,
    patience: Patience,
}

/// How many bits of the counter's value the word contains.
pub const VALUE_BITS: u32 = 56;
/// The full value in `near` is replaced when a new reading is this far from it, so that the upper
/// bits of every published value can be derived from it.
const FAR: u64 = 1 << (VALUE_BITS - 2);

impl<W: Word, C: Counter, R: Relax> Combined<W, C, R> {
    /// Makes a counter whose concurrent reads are combined. Reads the counter's device once.
    pub fn new(counter: C, relax: R) -> Combined<W, C, R> {
        let now = counter.read();
        Combined {
            word: OwnLine(W::new(CounterState::new(now).0)),
            near: OwnLine(W::new(now)),
            counter,
            relax,
            policy: ReadPolicy::Combined,
            patience: Patience::ENDLESS,
        }
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(self, policy: ReadPolicy) -> Self {
        Combined { policy, ..self }
    }

    /// Sets the patience of waiters.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Combined { patience, ..self }
    }

    /// Returns the counter.
    pub fn counter(&self) -> &C {
        &self.counter
    }

    /// Returns the counter's value, which is at most one device read older than the call.
    ///
    /// Costs a device read and two compare-exchanges if no other thread is reading. Otherwise the
    /// call waits for the thread that is reading, for at most one device read.
    #[inline]
    pub fn read(&self) -> u64 {
        match self.policy {
            ReadPolicy::Direct => self.counter.read(),
            ReadPolicy::Combined => self.read_combined(),
        }
    }

    /// Reads the device without waiting, even if another thread is reading it.
    #[inline]
    pub fn read_directly(&self) -> u64 {
        self.counter.read()
    }

    /// Reads the counter, or waits for the value that another thread is reading.
    #[inline]
    fn read_combined(&self) -> u64 {
        loop {
            // Acquire: pairs with the Release in `renew`. A reader that sees a new full value here
            // and then reads `word` sees at least the lock of the thread that stored the value, so
            // it does not combine the value with an older publication.
            let near = if self.is_wide() { self.near.0.load(Ordering::Acquire) } else { 0 };
            // Relaxed: no value is taken from this reading of the word. Before this thread takes a
            // value or the lock, it reads the word again with Acquire.
            let arrived = CounterState(self.word.0.load(Ordering::Relaxed));
            let read = match self.try_once(arrived) {
                Ok(value) => Some(value),
                Err(seen) => self.wait(near, arrived, seen),
            };
            if let Some(value) = read {
                return value;
            }
        }
    }

    /// Reads the device if its lock is free; otherwise returns the current word.
    #[inline]
    fn try_once(&self, seen: CounterState) -> Result<u64, CounterState> {
        if seen.is_locked() {
            return Err(seen);
        }
        self.try_hold(seen, seen.locked())
    }

    /// Takes the lock: changes the word from `seen` to `held`. Then reads the device and publishes.
    #[inline]
    fn try_hold(&self, seen: CounterState, held: CounterState) -> Result<u64, CounterState> {
        // Acquire, on success and on failure: pairs with the Release in `publish`. On success, the
        // device is read after the previous holder has read it. On failure, the caller can take a
        // value from the word that the exchange has found.
        let order = (Ordering::Acquire, Ordering::Acquire);
        match self.word.0.compare_exchange(seen.0, held.0, order.0, order.1) {
            Ok(_) => self.read_and_publish(held),
            Err(now) => Err(CounterState(now)),
        }
    }

    /// Reads the counter while this thread holds the lock, and publishes the value for waiters.
    #[inline]
    fn read_and_publish(&self, held: CounterState) -> Result<u64, CounterState> {
        let unlock = UnlockOnPanic { word: &self.word.0, held };
        let value = self.counter.read();
        core::mem::forget(unlock);
        if self.is_wide() {
            self.renew(value);
        }
        self.publish(held, value)
    }

    /// Publishes a value and unlocks. Returns the current word if a waiter has taken over the lock.
    ///
    /// Release: pairs with every Acquire of the word. A thread that takes the value or the lock
    /// sees everything before the device read, and the full value that `renew` stored.
    #[inline]
    fn publish(&self, held: CounterState, value: u64) -> Result<u64, CounterState> {
        let published = held.published(value).0;
        if self.patience == Patience::ENDLESS {
            // No waiter takes over, so the lock is still held. A plain store does not wait for the
            // cache line.
            self.word.0.store(published, Ordering::Release);
            return Ok(value);
        }
        // Acquire, on failure: pairs with the Release of the waiter that took over and published.
        let order = (Ordering::Release, Ordering::Acquire);
        match self.word.0.compare_exchange(held.0, published, order.0, order.1) {
            Ok(_) => Ok(value),
            Err(now) => Err(CounterState(now)),
        }
    }

    /// Replaces the full value `near` if the upper bits of `value` cannot be derived from it.
    #[inline]
    fn renew(&self, value: u64) {
        let near = self.near.0.load(Ordering::Relaxed);
        if value.wrapping_sub(near).wrapping_add(FAR) >= 2 * FAR {
            // Release: pairs with the Acquire in `read_combined`. A compare-exchange, because a
            // holder that has lost its lock to a waiter must not undo a later change.
            let _ = self.near.0.compare_exchange(near, value, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Waits until a value is published or the lock is free. Returns `None` if another full value
    /// has replaced `near`; then the reader starts again.
    #[cold]
    fn wait(&self, near: u64, arrived: CounterState, mut seen: CounterState) -> Option<u64> {
        let mut round = 0;
        loop {
            if seen.sequence() != arrived.sequence() {
                return self.full(near, seen);
            }
            let tried = if !seen.is_locked() {
                self.try_hold(seen, seen.locked())
            } else if round >= self.patience.0 {
                round = 0;
                self.try_hold(seen, seen.taken_over())
            } else {
                self.relax.relax(round);
                round = round.saturating_add(1);
                // Acquire: pairs with the Release in `publish`: the result can come from this word.
                Err(CounterState(self.word.0.load(Ordering::Acquire)))
            };
            match tried {
                Ok(value) => return Some(value),
                Err(now) => seen = now,
            }
        }
    }

    /// Extends the truncated value in `seen` to the 64-bit value that is closest to `near`, the
    /// full value that the reader loaded first. `None` if `near` has changed since then.
    #[inline]
    fn full(&self, near: u64, seen: CounterState) -> Option<u64> {
        if !self.is_wide() {
            return Some(seen.value());
        }
        // Relaxed: `seen` was read with Acquire, so this load sees any full value that the
        // publisher of `seen` stored before it published.
        if self.near.0.load(Ordering::Relaxed) != near {
            return None;
        }
        let unused = u64::BITS - VALUE_BITS;
        // Sign-extended: the published value can be less or greater than `near`.
        let distance = ((seen.value().wrapping_sub(near) << unused) as i64) >> unused;
        Some(near.wrapping_add_signed(distance) & mask(self.counter.bits()))
    }

    #[inline]
    fn is_wide(&self) -> bool {
        self.counter.bits() > VALUE_BITS
    }
}

impl<W: Word, C: Counter, R: Relax> Counter for Combined<W, C, R> {
    #[inline]
    fn read(&self) -> u64 {
        self.read()
    }

    #[inline]
    fn bits(&self) -> u32 {
        self.counter.bits()
    }
}

/// Returns a mask of the bits that a counter of this width has.
#[inline]
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(2, 64))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CounterState(u64);

impl CounterState {
    const LOCKED: u64 = 1;
    const TAKEOVER: u64 = 1 << 1;
    const TAKEOVERS: u64 = 0b11 << 1;
    const PUBLICATION: u64 = 1 << 3;
    const SEQUENCE: u64 = 0b1_1111 << 3;
    const VALUE_SHIFT: u32 = u64::BITS - VALUE_BITS;

    fn new(value: u64) -> CounterState {
        CounterState(value << CounterState::VALUE_SHIFT)
    }

    #[inline]
    fn is_locked(self) -> bool {
        self.0 & CounterState::LOCKED != 0
    }

    #[inline]
    fn sequence(self) -> u64 {
        self.0 & CounterState::SEQUENCE
    }

    #[inline]
    fn value(self) -> u64 {
        self.0 >> CounterState::VALUE_SHIFT
    }

    #[inline]
    fn locked(self) -> CounterState {
        CounterState(self.0 | CounterState::LOCKED)
    }

    fn taken_over(self) -> CounterState {
        let takeovers = self.0.wrapping_add(CounterState::TAKEOVER) & CounterState::TAKEOVERS;
        CounterState(self.0 & !CounterState::TAKEOVERS | takeovers)
    }

    /// Returns the unlocked word with the next sequence number and this value.
    #[inline]
    fn published(self, value: u64) -> CounterState {
        let sequence = self.0.wrapping_add(CounterState::PUBLICATION) & CounterState::SEQUENCE;
        CounterState(value << CounterState::VALUE_SHIFT | sequence)
    }
}

/// Unlocks without publishing if the counter panics.
struct UnlockOnPanic<'a, W: Word> {
    word: &'a W,
    held: CounterState,
}

impl<W: Word> Drop for UnlockOnPanic<'_, W> {
    fn drop(&mut self) {
        let (held, free) = (self.held.0, self.held.0 & !CounterState::LOCKED);
        // Release: pairs with every Acquire of the word, as in `publish`. The exchange fails if a
        // waiter has taken over and holds the lock.
        let _ = self.word.compare_exchange(held, free, Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A counter whose value is set by a test. Reading it panics while the value is zero.
    struct Settable {
        shows: AtomicU64,
        readings: AtomicU64,
        bits: u32,
    }

    impl Settable {
        fn new(bits: u32) -> Settable {
            Settable { shows: 1.into(), readings: 0.into(), bits }
        }
    }

    impl Counter for &Settable {
        fn read(&self) -> u64 {
            self.readings.fetch_add(1, Ordering::Relaxed);
            let shows = self.shows.load(Ordering::Relaxed);
            assert!(shows != 0, "a counter's panic");
            shows
        }

        fn bits(&self) -> u32 {
            self.bits
        }
    }

    fn relax(_: u32) {
        unreachable!("no other thread reads")
    }

    type Alone<'a> = Combined<AtomicU64, &'a Settable, fn(u32)>;

    /// Goal: without other readers each read is one device read, and keeps all bits.
    #[test]
    fn alone_every_read_reads_the_device() {
        for bits in [32, 56, 57, 64] {
            let settable = Settable::new(bits);
            let mask = mask(bits);
            let counter: Alone<'_> = Combined::new(&settable, relax);
            let mut readings = 1;
            for value in [7, 7, 8, mask, mask - 1, 3, mask / 2, 1] {
                settable.shows.store(value, Ordering::Relaxed);
                for _ in 0..40 {
                    assert_eq!(counter.read(), value);
                    let state = CounterState(counter.word.0.load(Ordering::Relaxed));
                    let near = counter.near.0.load(Ordering::Relaxed);
                    assert_eq!(counter.full(near, state), Some(value), "{bits} bits");
                    readings += 1;
                }
            }
            assert_eq!(settable.readings.load(Ordering::Relaxed), readings);
        }
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let settable = Settable::new(64);
        let counter: Alone<'_> = Combined::new(&settable, relax);
        let before = CounterState(counter.word.0.load(Ordering::Relaxed));
        settable.shows.store(0, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(|| counter.read())).is_err());
        assert_eq!(CounterState(counter.word.0.load(Ordering::Relaxed)), before);
        settable.shows.store(9, Ordering::Relaxed);
        assert_eq!((counter.read(), counter.read_directly()), (9, 9));
    }

    /// Goal: of several waiters that saw the same holder only one takes over.
    #[test]
    fn a_takeover_is_a_new_holding() {
        let held = CounterState::new(5).published(6).locked();
        let mut seen = held;
        for _ in 0..3 {
            seen = seen.taken_over();
            assert_ne!(seen, held);
            assert_eq!((seen.value(), seen.sequence()), (6, held.sequence()));
            assert!(seen.is_locked() && !seen.published(7).is_locked());
        }
    }

    #[test]
    fn direct_reads_do_not_change_the_word() {
        let settable = Settable::new(64);
        let counter: Alone<'_> = Combined::new(&settable, relax as fn(u32));
        let counter = counter.with_policy(ReadPolicy::Direct);
        let before = counter.word.0.load(Ordering::Relaxed);
        settable.shows.store(9, Ordering::Relaxed);
        assert_eq!(counter.read(), 9);
        assert_eq!(counter.word.0.load(Ordering::Relaxed), before);
    }
}
