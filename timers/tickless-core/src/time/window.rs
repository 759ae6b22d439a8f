//! A timer's soft expiry, before which it never fires, and its hard expiry, for which the event
//! device (what wakes the thread or CPU that fires the timer) is armed. The time between them is
//! the timer's slack.

use super::Ns;

/// The range of time in which a timer fires, with `soft <= hard`.
///
/// Both are times on the owning base's clock, in nanoseconds; any `u64` is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The timer never fires before this.
    pub soft: Ns,
    /// The device is armed for this.
    pub hard: Ns,
}

impl Window {
    /// Returns the window of a timer without slack.
    pub const fn at(time: Ns) -> Window {
        Window { soft: time, hard: time }
    }

    /// Returns the window from `soft` to `hard`. A `hard` before `soft` is raised to `soft`, so
    /// that a contradiction makes the timer late rather than early.
    pub const fn new(soft: Ns, hard: Ns) -> Window {
        Window { soft, hard: if hard.0 < soft.0 { soft } else { hard } }
    }
}
