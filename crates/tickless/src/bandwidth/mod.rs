//! Rate limits, and quotas of CPU time.
//!
//! - [`Limiter`]: a number of permits per period, taken immediately or awaited; [`KeyedLimiter`]
//!   has a limit for each key.
//! - [`Throttle`]: threads that share a quota of CPU time per period, and park when it is used up.
//!
//! ```
//! use std::time::Duration;
//! use tickless::Timers;
//!
//! let timers = Timers::process()?;
//! let limiter = timers.limiter(100, Duration::from_secs(1)).start()?;
//! limiter.try_acquire(60)?;
//! assert!(limiter.try_acquire(60).is_err(), "40 are left in this second");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// | file | what |
// |---|---|
// | `controller` | a group with its refill timer and its waiters, used by the files below |
// | `throttle` | threads that share CPU time, and park when it is used up |
// | `limiter` | permits, taken immediately or awaited |
// | `keyed` | a limit for each key |
// | `plan` | settings and start errors |

mod controller;
mod keyed;
mod limiter;
mod plan;
#[cfg(linux_platform)]
mod throttle;

pub use keyed::KeyedLimiter;
pub use limiter::{AcquireError, Limiter};
pub use plan::BandwidthBuilder;
#[cfg(linux_platform)]
pub use throttle::{Throttle, Worker};
pub use tickless_core::bandwidth::{BandwidthError, Counts};
