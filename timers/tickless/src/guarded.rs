//! A mutex for callbacks to lock: a synchronous cancel, which waits for a callback, returns an
//! error if its caller holds the mutex that the callback needs.

use crate::platform::locked::locked;
use crate::timer::waits;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex for data that callbacks share with the rest of a program. A synchronous cancel deadlocks
/// if its caller holds a lock that the callback needs. With this lock, the cancel returns
/// [`CancelError::Lock`](crate::CancelError::Lock) instead.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// use tickless::{CancelError, Timers};
/// use tickless::callback::CallbackLock;
///
/// let timers = Timers::process()?;
/// let state = Arc::new(CallbackLock::new(0));
/// let in_callback = Arc::clone(&state);
/// let timer = timers.timeout(move |_| *in_callback.lock() += 1);
///
/// let mine = state.lock();
/// timer.start(Duration::ZERO)?;
/// std::thread::sleep(Duration::from_millis(20)); // by now the callback waits for the lock
/// assert_eq!(timer.cancel_sync(), Err(CancelError::Lock));
/// drop(mine);
/// timer.cancel_sync()?; // now it waits until the callback has returned
/// assert_eq!(*state.lock(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without contention it costs as much as a [`std::sync::Mutex`] plus two plain stores. A panic
/// does not poison it: a callback's panic is caught and reported, and the next holder gets the data
/// as the panic left it.
pub struct CallbackLock<T: ?Sized> {
    /// The thread that holds the lock, or 0.
    holder: AtomicU64,
    mutex: Mutex<T>,
}

struct Guard<'a, T: ?Sized> {
    holder: &'a AtomicU64,
    guard: MutexGuard<'a, T>,
}

impl<T> CallbackLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> CallbackLock<T> {
        CallbackLock { holder: AtomicU64::new(0), mutex: Mutex::new(value) }
    }

    /// Consumes the lock and returns its value.
    pub fn into_inner(self) -> T {
        self.mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> CallbackLock<T> {
    /// Waits until the lock is free and takes it. A thread that already holds it waits forever.
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn lock(&self) -> impl DerefMut<Target = T> {
        let guard = match self.mutex.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(),
        };
        // Relaxed: only the deadlock check in `waits` reads this, on other threads. A check that
        // misses a new holder finds it when the check is repeated.
        self.holder.store(waits::this_thread(), Ordering::Relaxed);
        Guard { holder: &self.holder, guard }
    }

    /// Waits for the lock, and records the wait in the table in which cancels find deadlocks.
    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        // The thread that holds the lock can itself wait, in a synchronous cancel, for the callback
        // that runs on this thread. Enter this wait in the table of all waits, so that the holder's
        // cancel detects the deadlock and returns an error; `lock` cannot return one.
        let entered = waits::enter_lock(&self.holder);
        let guard = locked(&self.mutex);
        drop(entered);
        guard
    }
}

impl<T: ?Sized> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: Default> Default for CallbackLock<T> {
    fn default() -> Self {
        CallbackLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for CallbackLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackLock").field("mutex", &&self.mutex).finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
