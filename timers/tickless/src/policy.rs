//! Settings that replace a mechanism of this library by the older mechanism of the Linux kernel, so
//! that studies, benches and tests of this project can compare them. Requires the feature `policy`.
//! It is not part of the public interface, and can change with any version.

use crate::builder::Builder;
use tickless_core::bases::WheelEvents;

pub use tickless_core::bases::{Deferral, Scan};
pub use tickless_core::queues::wheel::PushOut;
pub use tickless_core::rearm::Policy;

#[doc(hidden)]
impl Builder {
    /// Sets whether the event device is programmed again when the timer that it is armed for is
    /// removed: always, never, or only if a cancel removes it.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.setup.core.policy = policy;
        self
    }

    /// Sets how the deadline of a pending timeout is moved to a later time: by changing only the
    /// deadline, without a lock, or by moving the timer to its new bucket of the wheel at once.
    pub fn push_out(mut self, push_out: PushOut) -> Builder {
        self.setup.core.push_out = push_out;
        self
    }

    /// Sets where the callbacks of timeouts, and of precise timers that are
    /// [`deferred`](crate::HrTimer::deferred), run; by default in the driver. With
    /// [`Deferral::OnExpiry`] they run in an expiry thread of their base. [`Deferral::EveryTick`]
    /// wakes that thread for every tick of the driver, as the real-time kernel once did, and
    /// implies [`ticking`](Builder::ticking).
    pub fn deferral(mut self, deferral: Deferral) -> Builder {
        self.setup.core.deferral = deferral;
        if deferral == Deferral::EveryTick { self.ticking() } else { self }
    }

    /// Makes drivers wake on every tick, like a kernel with a periodic tick, and check whether
    /// timeouts have expired. A tick of 1 ms costs a thousand wakeups a second.
    pub fn ticking(mut self) -> Builder {
        self.setup.core.wheel = WheelEvents::Tick;
        self.setup.ticks = true;
        self
    }

    /// Sets which bases a synchronous cancel searches for a running callback of its timer.
    pub fn scan(mut self, scan: Scan) -> Builder {
        self.setup.core.scan = scan;
        self
    }
}
