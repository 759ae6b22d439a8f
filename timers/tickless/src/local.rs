//! Timers of one thread, without locks, threads or callbacks: to embed in an event loop.
//!
//! [`LocalTimers`] are coarse, each with a deadline of its own; [`FixedTimeouts`] have one duration
//! for all timers, or one for each [`Class`] of timers, and cost even less. The event loop asks for
//! the time of the next event, waits until then at most, and passes in the current time when it
//! wakes.
//!
//! ```
//! use std::time::Duration;
//! use tickless::LocalTimers;
//! use tickless::time::Instant;
//!
//! let mut now = Instant::from_secs(1); // read from the loop's clock
//! let mut timers = LocalTimers::new(now);
//! let idle = timers.insert("connection 7")?;
//! timers.start(idle, Duration::from_millis(30))?;
//! timers.start(idle, Duration::from_millis(50))?; // pushed out
//!
//! let mut closed = Vec::new();
//! while closed.is_empty() {
//!     now = timers.next_event().unwrap(); // a loop would poll until then
//!     timers.advance(now, |timers, key| closed.extend(timers.remove(key)));
//! }
//! assert_eq!(closed, ["connection 7"]);
//! # Ok::<(), tickless::local::LocalError>(())
//! ```
//!
//! [`future`] has sleeps, timeouts and intervals for executors that keep a task on its thread.
//!
//! For timers that fire in an event loop but have callbacks, and that other threads can arm, see
//! [`driver`](crate::driver).

#[cfg(doc)]
use tickless_core::local::LocalTimers;
pub use tickless_core::local::{Class, FixedKey, FixedTimeouts, Key, LocalError, future};
