//! Clocks for programs, independent of the clock that timers run on.
//!
//! - [`Combined`]: many threads read a slow shared counter, and one device read serves them all.
//!   For PTP hardware clocks, device counters behind a bus, and any `clock_gettime` that is a
//!   system call.
//! - [`Clock`]: monotonic, boottime and realtime over the best of several counters, with a watchdog
//!   that detects a faulty counter and switches to the next one.
//! - Counters: [`Tsc`], [`SystemClock`], or anything that implements [`Counter`]. A counter that
//!   may go back needs a [`Ratchet`].

pub use crate::clock_timer::{ClockFired, ClockTimer};
#[doc(inline)]
pub use crate::platform::clock::ClockSource;
#[doc(inline)]
pub use crate::platform::clock_error::{Fallback, OpenClockError};
#[doc(inline)]
pub use crate::platform::program_clocks::combined::Combined;
#[cfg(linux_platform)]
#[doc(inline)]
pub use crate::platform::program_clocks::hardware::{SystemClock, Tsc};
#[doc(inline)]
pub use crate::platform::program_clocks::kept::{Clock, Report};
#[doc(inline)]
pub use crate::platform::time_base::TimeBase;
pub use tickless_core::clock::counter::Counter;
pub use tickless_core::clock::sources::Fault;
pub use tickless_core::clock::watchdog::Tolerance;

use tickless_core::time::{Instant, Ns};

/// Wraps a counter that may go back, because it can be set or differs between CPUs, so that its
/// readings never do: a reading below the highest one so far is replaced by the highest. Costs one
/// word that all readers share and most of them write.
pub type Ratchet<C> = tickless_core::clock::ratchet::Ratchet<core::sync::atomic::AtomicU64, C>;

/// Converts a [`SystemTime`](std::time::SystemTime) to an instant on [`TimeBase::Realtime`], for a
/// [`ClockTimer`]: nanoseconds since 1970, and 0 for anything before.
pub fn realtime(time: std::time::SystemTime) -> Instant {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ns::from_duration(since).into()
}
