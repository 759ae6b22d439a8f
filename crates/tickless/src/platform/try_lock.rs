//! A lock that a thread takes or leaves: nothing waits for it.
//!
//! For what each CPU has of its own. Another thread is only in the way if it lost that CPU while it
//! held the lock; then the caller uses another CPU's. Taking it costs one atomic exchange, and
//! releasing it a store.
//!
//! Generic over the word, so that the model checkers run this file.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use tickless_core::platform::{Ordering, Word};

/// A lock around a value.
pub struct TryLock<T, W> {
    /// 1 while a thread has a guard.
    taken: W,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and there is one guard at a time.
unsafe impl<T: Send, W: Sync> Sync for TryLock<T, W> {}

/// Access to the value of a [`TryLock`]; unlocks it when dropped.
pub struct TryGuard<'a, T, W: Word>(&'a TryLock<T, W>);

// SAFETY: a shared guard gives out shared references to the value, and nothing else. (The lock is
// `Sync` for any `T: Send`, so the derived implementation would be too wide.)
unsafe impl<T: Sync, W: Word + Sync> Sync for TryGuard<'_, T, W> {}

impl<T, W: Word> TryLock<T, W> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> TryLock<T, W> {
        TryLock { taken: W::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; `None` if another thread has it.
    #[inline]
    pub fn try_lock(&self) -> Option<TryGuard<'_, T, W>> {
        // Acquire: pairs with the Release in `drop`.
        let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
        self.taken.compare_exchange(0, 1, taken, not).is_ok().then(|| TryGuard(self))
    }
}

impl<T, W> fmt::Debug for TryLock<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryLock").finish_non_exhaustive()
    }
}

impl<T, W: Word> Deref for TryGuard<'_, T, W> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, W: Word> DerefMut for TryGuard<'_, T, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is mutably borrowed.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T, W: Word> Drop for TryGuard<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `try_lock`.
        self.0.taken.store(0, Ordering::Release);
    }
}
