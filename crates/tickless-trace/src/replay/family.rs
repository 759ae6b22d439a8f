//! The two families of kernel timers.

/// Which family a timer is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Family {
    /// Coarse ones.
    Wheel,
    /// High-resolution ones.
    Queue,
}
