//! Timers with the names and the semantics of `tokio::time`. To switch, change the import.
//!
//! ```
//! use tickless::tokio_time::{self as time, Duration, Instant};
//!
//! time::run_paused(async {
//!     let begin = Instant::now();
//!     time::sleep(Duration::from_secs(3600)).await; // takes no time at all
//!     assert_eq!(begin.elapsed(), Duration::from_secs(3600));
//!
//!     let never = std::future::pending::<()>();
//!     assert!(time::timeout(Duration::from_secs(60), never).await.is_err());
//! });
//! ```
//!
//! Requires the feature `tokio-time`, but not tokio: the timers are those of the process
//! ([`tickless::future`](crate::future)) and work in any runtime, or in none.
//!
//! # Differences
//!
#![doc = include_str!("tokio_time/differences.md")]
//!
//! For each row, `tests/tokio_time.rs` runs one test body against both.
//!
//! # With tokio's runtime
//!
//! ```no_run
//! use tickless::tokio_time;
//!
//! let time = tokio_time::start_paused();
//! let idle = time.clone();
//! let runtime = tokio::runtime::Builder::new_current_thread()
//!     .on_thread_park(move || { idle.idle(); })
//!     .build()?;
//! let _entered = tokio_time::enter(&time);
//! runtime.block_on(async { /* the test */ });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The clock ignores I/O: it advances even if a socket is readable. A test with sockets wraps their
//! futures in [`VirtualTime::outside`](crate::VirtualTime::outside), or uses a pipe in memory
//! (`tokio::io::duplex`) instead.

mod clock;
pub mod error;
mod instant;
mod interval;
mod sleep;
mod timeout;

pub use clock::{Entered, advance, enter, pause, resume, run_paused, start_paused};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use std::time::Duration;
pub use timeout::{Timeout, timeout, timeout_at};
