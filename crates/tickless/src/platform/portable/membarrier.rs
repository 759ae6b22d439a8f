//! Only Linux has a memory barrier on all threads. Without it, the lock of a base has no bias.

/// Returns `false`: barriers are not available.
pub fn is_available() -> bool {
    false
}

/// Not called, because [`is_available`] returns `false`.
pub fn on_every_thread() {}
