//! Rate limits, and quotas of CPU time.
//!
//! - [`Limiter`]: a number of permits per period, taken immediately or awaited; [`KeyedLimiter`]
//!   has a limit for each key.
//! - [`Throttle`]: threads that share a quota of CPU time per period, and park when it is used up.

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
