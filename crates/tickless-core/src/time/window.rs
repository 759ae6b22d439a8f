//! The two ends of a timer's expiry: the soft one, before which it never fires, and the hard one,
//! for which the device is armed. The slack of a timer is what lies between them.

use super::Ns;

/// When a timer may fire and when it must.
///
/// Both are points on the owning base's clock, in nanoseconds, any `u64`. `soft <= hard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Never before this (W1).
    pub soft: Ns,
    /// The device is armed for this.
    pub hard: Ns,
}

impl Window {
    /// From `soft` to `hard`; a `hard` before `soft` is moved up to it, so that the timer is
    /// late by the contradiction rather than early.
    pub const fn new(soft: Ns, hard: Ns) -> Window {
        Window { soft, hard: if hard.0 < soft.0 { soft } else { hard } }
    }
}
