//! The part of the seam that clocks and timers share: an atomic word, and how a thread waits.
//!
//! The host, the model checkers and a simulated machine each bring their own. **The only file that
//! names an atomic type.**

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
    /// Writes `new` if it holds `current`; otherwise returns what it holds.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;
}

/// A word in memory, for platforms that neither count nor check accesses. On a target without
/// 64-bit atomics, the feature `portable-atomic` provides it from the crate of that name; without
/// the feature, a platform implements `Word` for a type of its own.
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
}

/// A counter that threads park on, in 32 bits: what a futex compares. Nothing accesses it with
/// another size, which the language's memory model leaves undefined.
pub trait ParkingWord: Send + Sync {
    /// A counter at zero.
    fn zero() -> Self;
    /// Reads it.
    fn count(&self, order: Ordering) -> u32;
    /// Writes it.
    fn set_count(&self, count: u32, order: Ordering);
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
}

/// A world without futexes parks on its ordinary words.
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
}

/// What a thread does while it waits for another one; `round` counts up from zero.
///
/// A closure is one.
pub trait Relax: Send + Sync {
    /// Spins, yields or sleeps for a moment.
    fn relax(&self, round: u32);
}

impl<F: Fn(u32) + Send + Sync> Relax for F {
    fn relax(&self, round: u32) {
        self(round);
    }
}
