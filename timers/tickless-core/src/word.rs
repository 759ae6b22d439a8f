//! What clocks and timers both need from the platform: atomic words, and how a thread waits.
//!
//! The host, the model checkers and the simulated machine each implement these traits. **Outside
//! tests, no other file of this crate names an atomic type.**

#[cfg(target_has_atomic = "32")]
use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
pub use core::sync::atomic::Ordering;
#[cfg(all(not(target_has_atomic = "64"), feature = "portable-atomic"))]
use portable_atomic::AtomicU64;

/// A 64-bit atomic word.
pub trait Word: Send + Sync {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
    /// Writes `new` if the word holds `current`. Returns the value that the word held: as `Ok` if
    /// `new` was written, otherwise as `Err`.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;

    /// Writes `value`. Returns the value that the word held.
    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        let mut current = self.load(Ordering::Relaxed);
        while let Err(found) = self.compare_exchange(current, value, order, Ordering::Relaxed) {
            current = found;
        }
        current
    }

    /// Adds `value`, and wraps around at the end of the range. Returns the value before that.
    #[inline]
    fn add(&self, value: u64, order: Ordering) -> u64 {
        let mut current = self.load(Ordering::Relaxed);
        loop {
            let sum = current.wrapping_add(value);
            match self.compare_exchange(current, sum, order, Ordering::Relaxed) {
                Ok(before) => return before,
                Err(found) => current = found,
            }
        }
    }
}

/// The standard atomic type as a word, for platforms that neither count nor check memory accesses.
/// On a target without 64-bit atomics, the feature `portable-atomic` takes the type from the crate
/// of that name; without the feature, a platform implements `Word` for a type of its own.
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
impl Word for AtomicU64 {
    #[inline]
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    #[inline]
    fn add(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_add(value, order)
    }
}

/// A counter on which threads park. It has 32 bits, because a futex compares 32 bits. It is never
/// accessed with another size: the language's memory model leaves mixed sizes undefined.
pub trait ParkingWord: Send + Sync {
    /// A counter at zero.
    fn zero() -> Self;
    /// Reads it.
    fn count(&self, order: Ordering) -> u32;
    /// Writes it.
    fn set_count(&self, count: u32, order: Ordering);
    /// Adds one, and wraps around at the end of the range.
    fn add_one(&self, order: Ordering);
}

#[cfg(target_has_atomic = "32")]
impl ParkingWord for AtomicU32 {
    fn zero() -> Self {
        AtomicU32::new(0)
    }

    #[inline]
    fn count(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn set_count(&self, count: u32, order: Ordering) {
        self.store(count, order);
    }

    #[inline]
    fn add_one(&self, order: Ordering) {
        self.fetch_add(1, order);
    }
}

/// On platforms without futexes, threads park on ordinary words.
impl<W: Word> ParkingWord for W {
    fn zero() -> Self {
        W::new(0)
    }

    fn count(&self, order: Ordering) -> u32 {
        self.load(order) as u32
    }

    fn set_count(&self, count: u32, order: Ordering) {
        self.store(u64::from(count), order);
    }

    fn add_one(&self, order: Ordering) {
        self.add(1, order);
    }
}

/// What a thread does in a loop while it waits for another thread. A closure implements this.
pub trait Relax: Send + Sync {
    /// Spins, yields or sleeps for a moment. `round` is the number of calls in this loop so far.
    fn relax(&self, round: u32);
}

impl<F: Fn(u32) + Send + Sync> Relax for F {
    fn relax(&self, round: u32) {
        self(round);
    }
}

/// A value on cache lines that it shares with no other data, so that writes to others do not slow
/// it down: 128 bytes, because some CPUs fetch lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OwnLine<T>(pub T);

impl<T> core::ops::Deref for OwnLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
