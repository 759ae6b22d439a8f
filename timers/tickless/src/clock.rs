//! Clocks for programs, independent of the clock that timers run on.
//!
//! - [`Combined`]: many threads read a slow shared counter, and one device read serves them all.
//!   For PTP hardware clocks, device counters behind a bus, and any `clock_gettime` that is a
//!   system call.
//! - [`ClockTimer`]: a timer with its deadline on another clock than the timers' own. Tasks await
//!   [`future::clock_sleep_until`](crate::future::clock_sleep_until).
//! - Counters: [`SystemClock`], or anything that implements [`Counter`].

pub use crate::clock_timer::{ClockFired, ClockTimer};
#[doc(inline)]
pub use crate::platform::clock::{ClockKind, ClockSource};
#[doc(inline)]
pub use crate::platform::clock_error::{Fallback, OpenClockError};
#[doc(inline)]
pub use crate::platform::program_clocks::combined::Combined;
#[cfg(linux_platform)]
#[doc(inline)]
pub use crate::platform::program_clocks::hardware::SystemClock;
#[doc(inline)]
pub use crate::platform::time_base::TimeBase;
pub use tickless_core::clock::counter::Counter;

use tickless_core::time::{Instant, Ns};

/// Converts a [`SystemTime`](std::time::SystemTime) to an instant on [`TimeBase::Realtime`], for a
/// [`ClockTimer`]: nanoseconds since 1970, and 0 for anything before.
pub fn realtime(time: std::time::SystemTime) -> Instant {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ns::from_duration(since).into()
}
