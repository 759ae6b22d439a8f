//! The system's clocks, as the standard library has them.

use crate::platform::time_base::TimeBase;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tickless_core::time::Ns;

/// What the clock shows when it is first read: zero would hide arithmetic that goes below it.
const BEGINNING: Ns = Ns::from_secs(1);

/// The system's monotonic clock, since it was first read, and a second.
pub fn system_now() -> Ns {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGINNING.after(Ns::from_duration(BEGUN.get_or_init(Instant::now).elapsed()))
}

/// What a clock shows; zero before its beginning, for realtime 1970.
pub fn system_time(base: TimeBase) -> Ns {
    match base {
        TimeBase::Monotonic => system_now(),
        TimeBase::Realtime => {
            Ns::from_duration(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
        }
    }
}
