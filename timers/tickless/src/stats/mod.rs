//! Counters of a set of timers, and lists of its pending timers.
//!
//! [`Timers::stats`](crate::Timers::stats) returns counters of armings, cancels, expiries and
//! wakeups, [`Timers::timer_list`](crate::Timers::timer_list) lists every pending timer, and
//! [`Timers::leaks`](crate::Timers::leaks) groups them by owner.
//!
//! ```
//! use std::time::Duration;
//! use tickless::VirtualTime;
//!
//! let time = VirtualTime::new();
//! let idle = time.timers().timeout(|_| {}).labelled("idle connection");
//! idle.start(Duration::from_secs(30))?;
//! assert_eq!(time.timers().stats().pending(), 1);
//! assert_eq!(time.timers().leaks()[0].label, "idle connection");
//! # Ok::<(), tickless::callback::StartError>(())
//! ```

mod figures;
mod leaks;
#[cfg(feature = "metrics")]
mod publish;
mod timer_list;

pub use crate::timer::counters::CallbackTimes;
pub use figures::{BaseStats, Stats};
pub use leaks::Leak;
pub use tickless_core::bases::{BaseCounts, DeferredCounts};
pub use tickless_core::histogram::Histogram;
pub use tickless_core::rearm::DeviceCounts;
pub use timer_list::{ListedTimer, TimerList};
