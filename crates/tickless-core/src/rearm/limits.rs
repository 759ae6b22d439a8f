//! Limits of an event device and of its handler.

use crate::time::Ns;

/// What a device can and cannot do (R7, R8, R11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A deadline nearer than this is programmed this far ahead.
    pub min_delta: Ns,
    /// A deadline farther than this is programmed this far ahead; the event comes early.
    pub max_delta: Ns,
    /// After how many passes a handler that cannot catch up backs off.
    pub passes: u32,
    /// The longest back-off. Without one, such a handler ends and is to come back at once, so
    /// that its caller has a turn in between; that is no hang.
    pub backoff_max: Ns,
    /// An event that comes later than this after its time is counted as late (R13).
    pub tolerance: Ns,
}

impl Limits {
    /// No limit but the kernel's own 3 passes and 100 ms.
    pub const NONE: Limits = Limits {
        min_delta: Ns::ZERO,
        max_delta: Ns::NEVER,
        passes: 3,
        backoff_max: Ns::from_ms(100),
        tolerance: Ns::ZERO,
    };

    /// What a device is programmed for when it is to come at `expiry` (R11). Stopping it is
    /// always possible.
    pub(super) fn reach(&self, expiry: Ns, now: Ns) -> Ns {
        if expiry == Ns::NEVER {
            return Ns::NEVER;
        }
        let farthest = now.after(self.max_delta);
        expiry.clamp(now.after(self.min_delta).min(farthest), farthest)
    }
}
