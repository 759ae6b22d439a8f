//! A lock that a thread takes only if it is free: no thread ever waits for it.
//!
//! It guards a value that exists once for each CPU: a thread that finds it taken uses the value of
//! another CPU. Taking the lock costs one atomic exchange, and releasing it one store. It is
//! generic over the type of its atomic word, so that the model checkers run this file.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use tickless_core::platform::{Ordering, Word};

pub struct TryLock<T, W> {
    /// 1 while a thread has a guard.
    taken: W,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and there is one guard at a time.
unsafe impl<T: Send, W: Sync> Sync for TryLock<T, W> {}

#[allow(missing_debug_implementations, reason = "an internal type")]
pub struct TryGuard<'a, T, W: Word>(&'a TryLock<T, W>);

// SAFETY: threads that share a guard get only `&T` from it, which `T: Sync` allows. (The derived
// implementation would require only `T: Send`, because that is enough for the lock to be `Sync`.)
unsafe impl<T: Sync, W: Word + Sync> Sync for TryGuard<'_, T, W> {}

impl<T, W: Word> TryLock<T, W> {
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
