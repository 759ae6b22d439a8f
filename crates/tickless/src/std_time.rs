//! Points in time of these timers as [`std::time::Instant`]s, and back: for frameworks whose
//! interfaces take those.
//!
//! Both count from the system's start. Where timers run on the CPU's counter the two clocks stay
//! within a few parts in a million of each other until the system is suspended; after that they
//! differ by what the counter counted meanwhile. So a program that compares instants takes all
//! of them from one clock: `instant(timers.now())`.
//!
//! ```
//! use std::time::Duration;
//! use tickless::{VirtualTime, std_time};
//!
//! let time = VirtualTime::new();
//! let begin = std_time::instant(time.now());
//! time.advance(Duration::from_secs(3600));
//! assert_eq!(std_time::instant(time.now()) - begin, Duration::from_secs(3600));
//! assert_eq!(std_time::ns(begin + Duration::from_secs(3600)), time.now());
//! ```

use crate::host::clock::system_now;
use std::sync::OnceLock;
use std::time::Instant;
use tickless_core::time::Ns;

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    std: Instant,
    ns: Ns,
}

/// The same for the whole process, so that whoever converts gets the same answer. The system's
/// clock is read last: a deadline of `std`'s is late by the time between the two readings, at most,
/// and never early.
fn anchor() -> Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    *ANCHOR.get_or_init(|| Anchor { std: Instant::now(), ns: system_now() })
}

/// A point in time as an instant. What an instant cannot express is the nearest that it can.
pub fn instant(at: Ns) -> Instant {
    let Anchor { std, ns } = anchor();
    if at < ns {
        return std.checked_sub(ns - at).unwrap_or(std);
    }
    let mut ahead = at.since(ns).to_duration();
    loop {
        if let Some(instant) = std.checked_add(ahead) {
            return instant;
        }
        ahead /= 2;
    }
}

/// An instant as a point in time. What came before the system's start is zero.
pub fn ns(at: Instant) -> Ns {
    let Anchor { std, ns } = anchor();
    match at.checked_duration_since(std) {
        Some(ahead) => ns + ahead,
        None => Ns(ns.0.saturating_sub(Ns::from_duration(std.duration_since(at)).0)),
    }
}
