//! Timers of one thread, without locks, threads or callbacks: to embed in an event loop.
//!
//! [`LocalTimers`] are coarse, with a deadline each; [`FixedTimeouts`] have one duration for all,
//! or one for each [`Class`], and cost less still. A program asks when the next one is due, waits
//! for that as it waits for everything else, and hands in the present when it has woken.
//!
//! ```
//! use std::time::Duration;
//! use tickless::LocalTimers;
//! use tickless::time::Instant;
//!
//! let mut now = Instant::from_secs(1); // whatever clock the loop has
//! let mut timers = LocalTimers::new(now);
//! let idle = timers.insert("connection 7")?;
//! timers.start(idle, Duration::from_millis(30))?;
//! timers.start(idle, Duration::from_millis(50))?; // pushed out
//!
//! let mut closed = Vec::new();
//! while closed.is_empty() {
//!     now = timers.next_event(); // a loop would poll until then
//!     timers.advance(now, |timers, key| closed.extend(timers.remove(key)));
//! }
//! assert_eq!(closed, ["connection 7"]);
//! # Ok::<(), tickless::local::LocalError>(())
//! ```
//!
//! For timers that other threads arm, or that have callbacks, and fire in a loop all the same, see
//! [`driver`](crate::driver).

pub use tickless_core::local::{Class, FixedError, FixedTimeouts, Key, LocalError, LocalTimers};
pub use tickless_core::queues::wheel::PushOut;
