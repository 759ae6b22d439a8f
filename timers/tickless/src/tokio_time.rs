//! Timers with the names and the semantics of `tokio::time`. To switch, change the import.
//!
//! ```
//! use tickless::tokio_time::{self as time, Duration, Instant};
//!
//! # let mut runtime = tokio::runtime::Builder::new_current_thread();
//! # let runtime = runtime.enable_all().start_paused(true).build()?;
//! # runtime.block_on(async { // #[tokio::test(start_paused = true)]
//! let begin = Instant::now();
//! time::sleep(Duration::from_secs(3600)).await; // takes no time at all
//! assert_eq!(begin.elapsed(), Duration::from_secs(3600));
//!
//! let never = std::future::pending::<()>();
//! assert!(time::timeout(Duration::from_secs(60), never).await.is_err());
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Requires the feature `tokio-time`.
//!
//! # Inside a runtime
//!
//! A runtime of tokio's fires its own timers: no thread of this library is involved. On Linux the
//! first use registers a timerfd with the runtime's reactor, so the runtime must be built with
//! `enable_io`. The worker that waits in the reactor fires the timers and calls their wakers there.
//!
//! - A sleep belongs to the runtime in which it is created. Outside of a runtime, and with
//!   `runtime.block_on(sleep(...))`, it uses the timers of the process
//!   ([`tickless::future`](crate::future)).
//! - A timeout belongs to the runtime in which its future first has to wait.
//! - While a task blocks the worker that waits in the reactor, the runtime's timers are late, and
//!   [`stats`] reports it. [`rescue_after`] makes a thread of the process fire them then. Timers of
//!   [`tickless::future`](crate::future) have threads of their own.
//! - [`use_tokio_sleep`] replaces the timerfd by a sleep of tokio's, with tokio's resolution.
//! - A thread that has only entered a current-thread runtime does not drive it, so no sleep
//!   completes.
//! - When a runtime shuts down, its pending sleeps complete, as those of tokio do.
//! - On systems other than Linux the timers are those of the process, unless the clock is paused or
//!   [`use_tokio_sleep`] was called.
//!
//! # A paused clock
//!
//! `#[tokio::test(start_paused = true)]`, `tokio::time::pause` and `tokio::time::advance` move
//! these timers, too. All timers of the runtime then fire in the order of their deadlines, and with
//! tokio's resolution of a millisecond. So do the futures of [`tickless::future`](crate::future),
//! and limiters and timers from [`Timers::process`](crate::Timers::process), that are created while
//! the clock is paused. `pause`, `resume` and `advance` require the feature
//! `tokio-test-util`, as tokio's require `test-util`.
//!
//! Tokio can pause current-thread runtimes only. A [`VirtualTime`](crate::VirtualTime) works with
//! any runtime, but does not move tokio's own timers: `run_in_virtual_time` starts a runtime of
//! several threads on such a clock (feature `tokio-test-util`), and
//! [`VirtualTime::enter`](crate::VirtualTime::enter) puts the threads of other runtimes on one.
//!
//! # Differences
//!
#![doc = include_str!("tokio_time/differences.md")]
//!
//! For each row of the table, `tests/tokio_time` has a test that runs with tokio's timers and with
//! these.

#[cfg(feature = "tokio-test-util")]
mod clock;
pub mod error;
#[cfg(feature = "tokio-test-util")]
mod in_virtual_time;
mod instant;
mod interval;
mod sleep;
mod timeout;

#[cfg(feature = "tokio-test-util")]
pub use clock::{advance, pause, resume};
#[cfg(feature = "tokio-test-util")]
pub use in_virtual_time::run_in_virtual_time;
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
#[doc(no_inline)]
pub use std::time::Duration;
pub use timeout::{Timeout, timeout, timeout_at};

pub use crate::tokio_runtime::{rescue::rescue_after, use_tokio_sleep};

/// Returns the timers of this module, for libraries that take a
/// [`TimerSource`](crate::future::TimerSource). Each future belongs to the runtime in which it is
/// created. Limiters and timers with callbacks come from
/// [`Timers::process`](crate::Timers::process), which follows a paused clock, too.
pub fn timers() -> crate::future::TimerSource {
    crate::future::TimerSource::of_context()
}

/// Returns the statistics of the timers that a sleep created here would use. In a runtime these are
/// the runtime's timers, which are started if necessary. [`BaseStats::overdue`] counts expiries
/// that were late by more than 100 ms, for example because all workers were blocked. `None` if the
/// system refuses the threads of the process's timers.
///
/// [`BaseStats::overdue`]: crate::stats::BaseStats::overdue
#[track_caller]
pub fn stats() -> Option<crate::stats::Stats> {
    crate::tokio_runtime::current().timers().map(crate::timers::Timers::stats)
}
