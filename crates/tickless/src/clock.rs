//! Clocks other than the one that timers run on: counters of this machine, slow counters that one
//! thread reads for all, and a clock over the best of several counters.
//!
//! - [`Combined`]: many threads read a slow shared counter, and one device read serves them all.
//!   For PTP hardware clocks, device counters behind a bus, and any `clock_gettime` that is a
//!   system call. Not for a counter that costs less than a few cache misses.
//! - [`Clock`]: monotonic, boottime and realtime over the best of several counters, with a
//!   watchdog that falls back to the next one.
//! - Counters: [`Tsc`], [`SystemClock`], or anything that implements [`Counter`]; one
//!   that may go back needs a [`Ratchet`].
//!
//! ```
//! use tickless::clock::{ClockId, Combined, SystemClock};
//!
//! // The CPU time of this process: a system call for each reading.
//! let slow = SystemClock::open(ClockId::PROCESS_CPU)?;
//! let cpu_time = Combined::new(slow);
//! std::thread::scope(|s| {
//!     for _ in 0..2 {
//!         s.spawn(|| assert!(cpu_time.read() <= cpu_time.read()));
//!     }
//! });
//! # Ok::<(), tickless::clock::OpenClockError>(())
//! ```

pub use crate::clock_timer::{ClockFired, ClockTimer};
#[doc(inline)]
pub use crate::platform::clock::ClockSource;
#[doc(inline)]
pub use crate::platform::clock_error::{Fallback, OpenClockError};
#[doc(inline)]
pub use crate::platform::program_clocks::combined::Combined;
#[cfg(linux_platform)]
#[doc(inline)]
pub use crate::platform::program_clocks::hardware::{ClockId, SystemClock, Tsc};
#[doc(inline)]
pub use crate::platform::program_clocks::kept::{Clock, Report};
#[doc(inline)]
pub use crate::platform::time_base::TimeBase;
pub use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
pub use tickless_core::clock::sources::Fault;
pub use tickless_core::clock::timekeeper::WatchCounts;
pub use tickless_core::clock::watchdog::Tolerance;

use tickless_core::time::{Instant, Ns};

/// A counter that never goes back, over one that may: one that can be set, or that differs between
/// CPUs. Costs one word that all readers share.
pub type Ratchet<C> = tickless_core::clock::ratchet::Ratchet<core::sync::atomic::AtomicU64, C>;

/// Converts a [`SystemTime`](std::time::SystemTime) to an instant on [`TimeBase::Realtime`], for a
/// [`ClockTimer`]: nanoseconds since 1970, and 0 for anything before.
pub fn realtime(time: std::time::SystemTime) -> Instant {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ns::from_duration(since).into()
}
