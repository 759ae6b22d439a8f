//! Limits of an event device and of its handler.

use crate::time::Ns;

/// Limits of a device and its handler (R7, R8, R11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A deadline nearer than this is programmed this far ahead.
    pub min_delta: Ns,
    /// A deadline farther than this is programmed this far ahead; the event comes early.
    pub max_delta: Ns,
    /// The number of passes after which a handler that cannot catch up backs off.
    pub passes: u32,
    /// The longest back-off. If this is zero, such a handler ends and its device fires again at
    /// once, so that its caller can do other work in between. This does not count as a hang.
    pub backoff_max: Ns,
    /// An event that comes more than this after its deadline is counted as late (R13).
    pub tolerance: Ns,
}

impl Limits {
    /// No limits except Linux's own 3 passes and 100 ms.
    pub const NONE: Limits = Limits {
        min_delta: Ns::ZERO,
        max_delta: Ns::NEVER,
        passes: 3,
        backoff_max: Ns::from_ms(100),
        tolerance: Ns::ZERO,
    };

    /// The deadline within the limits that is nearest to `expiry` (R11). A device can always be
    /// stopped.
    pub(super) fn clamp(&self, expiry: Ns, now: Ns) -> Ns {
        if expiry == Ns::NEVER {
            return Ns::NEVER;
        }
        let farthest = now.after(self.max_delta);
        expiry.clamp(now.after(self.min_delta).min(farthest), farthest)
    }
}
