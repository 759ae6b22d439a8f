//! Limits of an event device and of its handler.

use crate::time::Ns;

/// Limits of a device and its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The shortest time ahead for which the device can be programmed. A nearer deadline is
    /// programmed this far ahead.
    pub min_delta: Ns,
    /// The longest time ahead for which the device can be programmed. A farther deadline is
    /// programmed this far ahead; the event comes early.
    pub max_delta: Ns,
    /// The number of passes over the due timers after which a handler backs off.
    pub passes: u32,
    /// The longest back-off: the pause after a handler that could not catch up. If this is zero,
    /// the handler just ends and its device fires again at once; its caller can do other work in
    /// between. [`hangs`](super::DeviceCounts::hangs) does not count such ends.
    pub backoff_max: Ns,
    /// An event that comes more than this after its deadline is counted as late.
    pub tolerance: Ns,
}

impl Limits {
    /// No limits on deadlines. As in Linux, at most 3 passes of a handler and 100 ms of back-off.
    pub const NONE: Limits = Limits {
        min_delta: Ns::ZERO,
        max_delta: Ns::NEVER,
        passes: 3,
        backoff_max: Ns::from_ms(100),
        tolerance: Ns::ZERO,
    };

    /// The deadline within the limits that is nearest to `expiry` (R11). [`Ns::NEVER`] is not
    /// limited, because it stops the device.
    pub(super) fn clamp(&self, expiry: Ns, now: Ns) -> Ns {
        if expiry == Ns::NEVER {
            return Ns::NEVER;
        }
        let farthest = now.after(self.max_delta);
        expiry.clamp(now.after(self.min_delta).min(farthest), farthest)
    }
}
