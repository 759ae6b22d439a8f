//! No system but Linux lets one thread order what the others do: the lock of a base has no bias.

/// Can barriers be made?
pub fn is_available() -> bool {
    false
}

/// Not called where [`is_available`] says no.
pub fn on_every_thread() {}
