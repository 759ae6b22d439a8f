//! One reader reads a slow shared counter, and the others take its value.
//!
//! Some counters serve one CPU at a time and take a microsecond over it. When all CPUs want
//! the time at once they queue for the device, and the longer the queue the longer everybody
//! holds whatever lock they ask the time under. Here whoever finds the counter free reads it,
//! and everybody who comes meanwhile waits for that reader's value: one device read serves
//! them all.
//!
//! For whom: PTP hardware clocks, device counters behind a bus, any `clock_gettime` that is a
//! system call. Not for a counter that costs less than a few cache misses, nor for one that
//! serves all CPUs at once: there the word below is the slower of the two.
//!
//! # Guarantees
//!
//! - C1 One device read per lock holding. The lock is tried, never queued for.
//! - C2 Who does not get it takes a value that was published after they arrived; so it is by
//!   the holder they watched, or by a later one.
//! - C3 Value and unlocking are one release store of one 64-bit word; readers use Acquire. Where
//!   holders may be taken over from it is a compare-exchange.
//! - C4 The word carries a publish sequence, so a counter that has stopped still lets waiters
//!   go: they wait for the sequence to move, not for the value.
//! - C5 A context that may have interrupted the holder, a signal handler say, calls
//!   [`read_directly`](Combined::read_directly) and waits for nobody. Its value may be ahead
//!   of what is published next, by one device read.
//! - C6 A value may predate the call that returns it by at most one device read.
//! - C8 [`read`](Combined::read) never goes back for any thread, nor across threads that are
//!   ordered by happens-before, as long as the counter does not: every value that it returns
//!   was published, and publications are ordered.
//!
//! # Taking over
//!
//! A kernel's holder has its interrupts off. A program's may lose its CPU, and would keep
//! everybody waiting. So a waiter's patience is limited: after so many rounds it takes the
//! lock away, reads the counter itself and publishes. The word tells one holding from the
//! next, so the first holder's publication fails, and it takes a value like any waiter: had
//! it returned its own it might, by its next call, see time go back:
//!
//! | A | B | C |
//! |---|---|---|
//! | locks; loses its CPU | takes over, publishes 10 | |
//! | | | locks, reads 20; loses its CPU |
//! | reads 30, may not publish | | |
//! | returns 30? | | publishes 20 |
//! | watches C: 20 | | |
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
//! A sequence that has come round by the time a waiter looks again makes it wait for one more
//! publication, and nothing worse. Counters of more than 56 bits keep, in a second word, a
//! value that is near; it changes once in 208 days of nanoseconds, or when somebody sets the
//! device. A reader that sees it change begins again.

use crate::clock::counter::{Counter, Hertz, Rating, Width};
use crate::word::{Ordering, Relax, Word};

/// How a shared counter is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum ReadPolicy {
    /// Everybody reads the device: before.
    Direct,
    /// One reads, the others take its value: after.
    #[default]
    Combined,
}

/// For how many rounds of [`Relax`] a waiter watches one holder before it takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience(pub u32);

impl Patience {
    /// Nobody takes over: for worlds where a holder keeps its CPU.
    pub const ENDLESS: Patience = Patience(u32::MAX);
}

/// A counter that is read by one thread for all who want it at that moment.
#[derive(Debug)]
pub struct Combined<W, C, R> {
    word: Apart<W>,
    /// A full value near the published one; only for counters wider than [`VALUE_BITS`].
    /// Written by holders before they publish.
    near: Apart<W>,
    counter: C,
    relax: R,
    policy: ReadPolicy,
    patience: Patience,
}

/// On cache lines of its own, and on the neighbour's that is fetched along with it.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<W>(W);

/// Bits of the counter that fit the word.
pub const VALUE_BITS: u32 = 56;
/// A full value is renewed when the present one is so far from it.
const FAR: u64 = 1 << (VALUE_BITS - 2);

impl<W: Word, C: Counter, R: Relax> Combined<W, C, R> {
    /// Combines the reads of a counter. Reads it once.
    pub fn new(counter: C, relax: R) -> Combined<W, C, R> {
        let now = counter.read();
        Combined {
            word: Apart(W::new(State::new(now).0)),
            near: Apart(W::new(now)),
            counter,
            relax,
            policy: ReadPolicy::Combined,
            patience: Patience::ENDLESS,
        }
    }

    /// The same, by another policy.
    #[must_use]
    pub fn with_policy(self, policy: ReadPolicy) -> Self {
        Combined { policy, ..self }
    }

    /// The same, with waiters of limited patience.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Combined { patience, ..self }
    }

    /// How it is read.
    pub fn policy(&self) -> ReadPolicy {
        self.policy
    }

    /// The counter itself.
    pub fn counter(&self) -> &C {
        &self.counter
    }

    /// What the counter stands at, or stood at by one device read before the call (C6).
    ///
    /// Costs a device read and two compare-exchanges if nobody else reads; otherwise it waits
    /// for whoever does, for at most one device read.
    #[inline]
    pub fn read(&self) -> u64 {
        match self.policy {
            ReadPolicy::Direct => self.counter.read(),
            ReadPolicy::Combined => self.read_combined(),
        }
    }

    /// Reads the device, whoever else may be at it (C5). Waits for nobody.
    #[inline]
    pub fn read_directly(&self) -> u64 {
        self.counter.read()
    }

    #[inline]
    fn read_combined(&self) -> u64 {
        loop {
            // Acquire: pairs with the Release in `renew`. Who sees a new value here sees its
            // holder's lock below, so a word published before it is no candidate any more.
            let near = if self.is_wide() { self.near.0.load(Ordering::Acquire) } else { 0 };
            // Relaxed: nothing is taken from this word. Whoever takes a value or the lock later
            // reads the word again, with Acquire.
            let arrived = State(self.word.0.load(Ordering::Relaxed));
            let read = match self.try_once(arrived) {
                Ok(value) => Some(value),
                Err(seen) => self.wait(near, arrived, seen),
            };
            if let Some(value) = read {
                return value;
            }
        }
    }

    /// Reads the device if nobody is at it; otherwise says what the word holds now.
    #[inline]
    fn try_once(&self, seen: State) -> Result<u64, State> {
        if seen.is_locked() {
            return Err(seen);
        }
        self.try_hold(seen, seen.locked())
    }

    /// Turns the word from `seen` to `held` and then reads and publishes as its holder.
    #[inline]
    fn try_hold(&self, seen: State, held: State) -> Result<u64, State> {
        // Acquire, both: pairs with the Release in `publish`. The device is read after the last
        // holder has read it, and the failure's word may be one to take.
        let order = (Ordering::Acquire, Ordering::Acquire);
        match self.word.0.compare_exchange(seen.0, held.0, order.0, order.1) {
            Ok(_) => self.read_and_publish(held),
            Err(now) => Err(State(now)),
        }
    }

    /// The one device read of a holding (C1), and its publication.
    #[inline]
    fn read_and_publish(&self, held: State) -> Result<u64, State> {
        let unlock = UnlockOnPanic { word: &self.word.0, held };
        let value = self.counter.read();
        core::mem::forget(unlock);
        if self.is_wide() {
            self.renew(value);
        }
        self.publish(held, value)
    }

    /// Release: pairs with every Acquire of the word. Whoever takes the value, or the lock,
    /// sees what was done before the device was read, and the value that is near.
    #[inline]
    fn publish(&self, held: State, value: u64) -> Result<u64, State> {
        let published = held.published(value).0;
        if self.patience == Patience::ENDLESS {
            // The lock is still ours, and a store need not wait until the line is.
            self.word.0.store(published, Ordering::Release);
            return Ok(value);
        }
        // Acquire, on failure: pairs with the Release of whoever took over and published.
        let order = (Ordering::Release, Ordering::Acquire);
        match self.word.0.compare_exchange(held.0, published, order.0, order.1) {
            Ok(_) => Ok(value),
            Err(now) => Err(State(now)),
        }
    }

    /// Sees to it that readers can tell the upper bits of `value`.
    #[inline]
    fn renew(&self, value: u64) {
        let near = self.near.0.load(Ordering::Relaxed);
        if value.wrapping_sub(near).wrapping_add(FAR) >= 2 * FAR {
            // Release: pairs with the Acquire in `read_combined`. Only if it is what it was: a
            // holder that has been taken over from must not undo what came after it.
            let _ = self.near.0.compare_exchange(near, value, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Until somebody has published, or the lock can be had. `None` if what is near has changed
    /// meanwhile: then the reader begins again.
    #[cold]
    fn wait(&self, near: u64, arrived: State, mut seen: State) -> Option<u64> {
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
                // Acquire: pairs with the Release in `publish`; this is a word to take.
                Err(State(self.word.0.load(Ordering::Acquire)))
            };
            match tried {
                Ok(value) => return Some(value),
                Err(now) => seen = now,
            }
        }
    }

    /// All bits of a published value; `None` if what was near on arrival is not any more.
    #[inline]
    fn full(&self, near: u64, seen: State) -> Option<u64> {
        if !self.is_wide() {
            return Some(seen.value());
        }
        // Relaxed: `seen` was read with Acquire, and whoever published it has renewed this.
        if self.near.0.load(Ordering::Relaxed) != near {
            return None;
        }
        let unused = u64::BITS - VALUE_BITS;
        // Sign-extended: the published value lies before or after the one that is near.
        let distance = (seen.value().wrapping_sub(near) << unused).cast_signed() >> unused;
        Some(near.wrapping_add_signed(distance) & self.counter.width().mask())
    }

    #[inline]
    fn is_wide(&self) -> bool {
        self.counter.width().count() > VALUE_BITS
    }
}

/// A combined counter is a counter: a [timekeeper](super::timekeeper) may run on it.
impl<W: Word, C: Counter, R: Relax> Counter for Combined<W, C, R> {
    #[inline]
    fn read(&self) -> u64 {
        self.read()
    }

    #[inline]
    fn width(&self) -> Width {
        self.counter.width()
    }

    fn frequency(&self) -> Hertz {
        self.counter.frequency()
    }

    fn rating(&self) -> Rating {
        self.counter.rating()
    }

    fn name(&self) -> &str {
        self.counter.name()
    }
}

/// What the word holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State(u64);

impl State {
    const LOCKED: u64 = 1;
    const TAKEOVER: u64 = 1 << 1;
    const TAKEOVERS: u64 = 0b11 << 1;
    const PUBLICATION: u64 = 1 << 3;
    const SEQUENCE: u64 = 0b1_1111 << 3;
    const VALUE_SHIFT: u32 = u64::BITS - VALUE_BITS;

    fn new(value: u64) -> State {
        State(value << State::VALUE_SHIFT)
    }

    #[inline]
    fn is_locked(self) -> bool {
        self.0 & State::LOCKED != 0
    }

    #[inline]
    fn sequence(self) -> u64 {
        self.0 & State::SEQUENCE
    }

    #[inline]
    fn value(self) -> u64 {
        self.0 >> State::VALUE_SHIFT
    }

    #[inline]
    fn locked(self) -> State {
        State(self.0 | State::LOCKED)
    }

    fn taken_over(self) -> State {
        let takeovers = self.0.wrapping_add(State::TAKEOVER) & State::TAKEOVERS;
        State(self.0 & !State::TAKEOVERS | takeovers)
    }

    /// Unlocked, with the next sequence number and this value.
    #[inline]
    fn published(self, value: u64) -> State {
        let sequence = self.0.wrapping_add(State::PUBLICATION) & State::SEQUENCE;
        State(value << State::VALUE_SHIFT | sequence)
    }
}

/// Gives the lock back, with nothing published, if the counter panics.
struct UnlockOnPanic<'a, W: Word> {
    word: &'a W,
    held: State,
}

impl<W: Word> Drop for UnlockOnPanic<'_, W> {
    fn drop(&mut self) {
        let (held, free) = (self.held.0, self.held.0 & !State::LOCKED);
        // Release: as in `publish`. It fails if somebody has taken over: the lock is theirs then.
        let _ = self.word.compare_exchange(held, free, Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Shows what it is told to, and panics at zero.
    struct Told {
        shows: AtomicU64,
        width: Width,
        readings: AtomicU64,
    }

    impl Counter for &Told {
        fn read(&self) -> u64 {
            self.readings.fetch_add(1, Ordering::Relaxed);
            let shows = self.shows.load(Ordering::Relaxed);
            assert!(shows != 0, "a counter's panic");
            shows
        }

        fn width(&self) -> Width {
            self.width
        }

        fn frequency(&self) -> Hertz {
            Hertz::NANOSECONDS
        }

        fn rating(&self) -> Rating {
            Rating::SLOW
        }

        fn name(&self) -> &str {
            "told"
        }
    }

    fn told(width: Width) -> Told {
        Told { shows: AtomicU64::new(1), width, readings: AtomicU64::new(0) }
    }

    fn relax(_: u32) {
        unreachable!("nobody else reads")
    }

    type Alone<'a> = Combined<AtomicU64, &'a Told, fn(u32)>;

    /// Goal: C1, C4: alone, each read is one device read, whatever the counter does, through
    /// every sequence number; the last bits of a wide one are kept, and it may be set to and fro.
    #[test]
    fn alone_every_read_reads_the_device() {
        for width in [Width::bits(32), Width::bits(56), Width::bits(57), Width::FULL] {
            let told = told(width);
            let counter: Alone<'_> = Combined::new(&told, relax);
            let mut readings = 1;
            for value in [7, 7, 8, width.mask(), width.mask() - 1, 3, width.mask() / 2, 1] {
                told.shows.store(value, Ordering::Relaxed);
                for _ in 0..40 {
                    assert_eq!(counter.read(), value);
                    let state = State(counter.word.0.load(Ordering::Relaxed));
                    let near = counter.near.0.load(Ordering::Relaxed);
                    assert_eq!(counter.full(near, state), Some(value), "{width:?}");
                    readings += 1;
                }
            }
            assert_eq!(told.readings.load(Ordering::Relaxed), readings);
        }
    }

    /// Goal: a counter that panics leaves the lock free and publishes nothing.
    #[test]
    fn a_panic_gives_the_lock_back() {
        let told = told(Width::FULL);
        let counter: Alone<'_> = Combined::new(&told, relax);
        let before = State(counter.word.0.load(Ordering::Relaxed));
        told.shows.store(0, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(|| counter.read())).is_err());
        assert_eq!(State(counter.word.0.load(Ordering::Relaxed)), before);
        told.shows.store(9, Ordering::Relaxed);
        assert_eq!((counter.read(), counter.read_directly()), (9, 9));
    }

    /// Goal: C1: of waiters that saw the same holder one takes over, since that is another
    /// holding; what was published stays.
    #[test]
    fn a_takeover_is_another_holding() {
        let held = State::new(5).published(6).locked();
        let mut seen = held;
        for _ in 0..3 {
            seen = seen.taken_over();
            assert_ne!(seen, held);
            assert_eq!((seen.value(), seen.sequence()), (6, held.sequence()));
            assert!(seen.is_locked() && !seen.published(7).is_locked());
        }
    }

    #[test]
    fn direct_reads_leave_the_word_alone() {
        let told = told(Width::FULL);
        let counter: Alone<'_> = Combined::new(&told, relax as fn(u32));
        let counter = counter.with_policy(ReadPolicy::Direct);
        let before = counter.word.0.load(Ordering::Relaxed);
        told.shows.store(9, Ordering::Relaxed);
        assert_eq!((counter.read(), counter.policy()), (9, ReadPolicy::Direct));
        assert_eq!(counter.word.0.load(Ordering::Relaxed), before);
    }
}
