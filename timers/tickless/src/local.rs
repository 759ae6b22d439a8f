//! Timers of one thread, without locks, threads or callbacks: to embed in an event loop.
//!
//! A duration counts from the call that is given it: the timers are made with a [`Clock`], usually
//! [`system_clock`], which each such call reads. A loop that has a time of its own makes them with
//! [`Clock::manual`], and only `advance` moves their time.
//!
//! [`LocalTimers`] are coarse, each with a deadline of its own; [`FixedTimeouts`] have one duration
//! for all timers, or one for each [`Class`] of timers, and cost even less. The event loop asks for
//! the time of the next event, waits until then at most, and passes in the current time when it
//! wakes.
//!
//! ```
//! use std::time::Duration;
//! use tickless::LocalTimers;
//! use tickless::local::system_clock;
//!
//! let mut timers = LocalTimers::new(system_clock());
//! let idle = timers.insert("connection 7")?;
//! timers.start(idle, Duration::from_millis(30))?;
//! timers.start(idle, Duration::from_millis(50))?; // pushed out
//!
//! let mut closed = Vec::new();
//! while closed.is_empty() {
//!     let next = timers.next_event().unwrap(); // a loop would poll until then
//!     timers.advance(next, |timers, key| closed.extend(timers.remove(key)));
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
pub use tickless_core::local::{Class, Clock, FixedKey, FixedTimeouts, Key, LocalError, future};

use crate::platform::system_clock::system_now;

/// Returns the system's monotonic clock, as the clock of one thread's timers: `CLOCK_MONOTONIC` on
/// Linux. Their `now` reads it, and the loop passes that to `advance`. A reading costs about 27 ns.
pub fn system_clock() -> Clock {
    Clock::new(|| system_now().into())
}
