//! The system's clocks, read through the standard library.

use crate::platform::time_base::TimeBase;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tickless_core::time::Ns;

/// The time that the first reading returns. It is not zero: near zero, a subtraction that saturates
/// would give the expected result by accident, and hide an error.
const BEGINNING: Ns = Ns::from_secs(1);

/// Returns the time on the system's monotonic clock: one second plus the time since the first call.
pub fn system_now() -> Ns {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGINNING.after(Ns::from_duration(BEGUN.get_or_init(Instant::now).elapsed()))
}

/// Returns the time of one of the system's clocks; realtime before 1970 is zero.
pub fn system_time(base: TimeBase) -> Ns {
    match base {
        TimeBase::Monotonic => system_now(),
        TimeBase::Realtime => {
            Ns::from_duration(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
        }
    }
}
