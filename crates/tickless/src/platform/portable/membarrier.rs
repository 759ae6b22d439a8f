//! Only Linux can make all threads of a process pass a memory barrier. Without that, the lock of a
//! base is an ordinary mutex, which no thread can take by plain stores (see `lock`).

/// Returns `false`: barriers are not available.
pub fn is_available() -> bool {
    false
}

/// Not called, because [`is_available`] returns `false`.
pub fn on_every_thread() {}
