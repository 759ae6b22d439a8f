//! The system's clocks, read through the standard library.

use crate::platform::time_base::TimeBase;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tickless_core::time::Ns;

/// The time of the first reading. Not zero, where a subtraction that saturates would go unnoticed.
const BEGINNING: Ns = Ns::from_secs(1);

/// Returns the time on the system's monotonic clock: one second plus the time since the first call.
pub fn system_now() -> Ns {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGINNING.after(Ns::from_duration(BEGUN.get_or_init(Instant::now).elapsed()))
}

/// Returns the time of one of the system's clocks; zero for realtime before 1970.
pub fn system_time(base: TimeBase) -> Ns {
    match base {
        TimeBase::Monotonic => system_now(),
        TimeBase::Realtime => {
            Ns::from_duration(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
        }
    }
}
