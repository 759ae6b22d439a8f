//! Bandwidth on the host: so much in every period, for threads and for permits.
//!
//! | file | what |
//! |---|---|
//! | `controller` | a core group with its refill timer, and whom it wakes |
//! | `throttle` | threads that spend CPU time, and park when there is none left |
//! | `limiter` | permits, taken at once or awaited |
//! | `plan` | how both are set up |

mod controller;
mod limiter;
mod plan;
mod throttle;

pub use limiter::{Acquire, AcquireError, Limiter, LimiterBuilder};
pub use plan::BandwidthError;
pub use throttle::{Checked, Throttle, ThrottleBuilder, ThrottleError, Worker};
