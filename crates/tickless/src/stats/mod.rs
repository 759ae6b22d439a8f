//! Counters of what has happened so far, and lists of what is pending.
//!
//! [`Timers::stats`](crate::Timers::stats) counts what happens,
//! [`Timers::timer_list`](crate::Timers::timer_list) shows every pending timer, and
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
//! assert_eq!(time.timers().leaks().leaks[0].label, "idle connection");
//! # Ok::<(), tickless::callback::StartError>(())
//! ```

// | file | what |
// |---|---|
// | `figures` | the counters of a set and of each base |
// | `timer_list` | every pending timer in a list for people |
// | `leaks` | what is still pending though it should not be, and who armed it |
// | `publish` | the same figures for the `metrics` facade |

mod figures;
mod leaks;
#[cfg(feature = "metrics")]
mod publish;
mod timer_list;

pub use crate::timer::counters::{CallbackTimes, CancelCounts};
pub use figures::{BaseStats, Stats};
pub use leaks::{Leak, Leaks};
pub use tickless_core::bases::pending::PendingIn;
pub use tickless_core::bases::{BaseCounts, BaseView, DeferredCounts, FiresIn, Late};
pub use tickless_core::histogram::Histogram;
pub use tickless_core::queues::wheel::{Levels, Wakes};
pub use tickless_core::rearm::DeviceCounts;
pub use timer_list::{ListedBase, ListedTimer, TimerList};
