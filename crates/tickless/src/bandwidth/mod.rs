//! Bandwidth on the host: so much in every period, for threads and for permits.
//!
//! | file | what |
//! |---|---|
//! | `controller` | a core group with its refill timer, and whom it wakes |
//! | `throttle` | threads that spend CPU time, and park when there is none left |
//! | `limiter` | permits, taken at once or awaited |
//! | `keyed` | a limit for each key |
//! | `plan` | how all of them are set up |

mod controller;
mod keyed;
mod limiter;
mod plan;
mod throttle;

pub use keyed::KeyedLimiter;
pub use limiter::{Acquire, AcquireError, Limiter, LimiterBuilder};
pub use plan::BandwidthError;
pub use throttle::{Checked, Throttle, ThrottleBuilder, ThrottleError, Worker};
