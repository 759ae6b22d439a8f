//! Locks a mutex of the standard library, also one that a panic has poisoned: the library's own
//! state is consistent wherever a callback or a waker can panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
