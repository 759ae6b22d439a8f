//! Points in time, ticks, and conversions to the standard library's instants.
//!
//! An [`Instant`] is a point on the timers' clock: [`Timers::now`](crate::Timers::now) reads it,
//! and deadlines are given on it. That clock counts nanoseconds from the system's start, and is
//! never set.
//!
//! # The standard library's instants
//!
//! [`to_std`] and [`from_std`] convert by one pair of readings, taken once per process: first of
//! the standard library's clock, then of the system's. The error is the time between the two, which
//! is short unless the thread lost its CPU in between. Durations are exact. A deadline that
//! [`from_std`] converts is late by this error, never early.
//!
//! If the timers run on the CPU's counter, readings of the two clocks differ by about a
//! microsecond. So a program that compares instants should take all of them from one clock:
//! `to_std(timers.now())`.
//!
//! ```
//! use std::time::Duration;
//! use tickless::VirtualTime;
//! use tickless::time::{from_std, to_std};
//!
//! let time = VirtualTime::new();
//! let begin = to_std(time.now());
//! time.advance(Duration::from_secs(3600));
//! assert_eq!(to_std(time.now()) - begin, Duration::from_secs(3600));
//! assert_eq!(from_std(begin + Duration::from_secs(3600)), time.now());
//! ```

pub use tickless_core::time::{Instant, Tick};

use crate::platform::per_process::PerProcess;
use crate::platform::system_clock::system_now;
use std::time;

/// A reading of each of the two clocks, taken at about the same moment.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    std: time::Instant,
    own: Instant,
}

/// Returns the pair of readings that all conversions of this process use. The system's clock is
/// read last, so a converted deadline of `std` is late by the time in between, and never early.
fn anchor() -> Anchor {
    // Not a `OnceLock`: after a fork while a thread initialises it, the child would wait forever.
    static ANCHOR: PerProcess<Anchor> = PerProcess::new();
    let read_clocks = || Anchor { std: time::Instant::now(), own: system_now().into() };
    ANCHOR.get(|_| true, || Some(read_clocks())).copied().unwrap_or_else(read_clocks)
}

/// Converts a point in time to the standard library's instant, and saturates; see the [module's
/// documentation](self) for the error. Costs an addition; the first call reads two clocks.
pub fn to_std(at: Instant) -> time::Instant {
    let Anchor { std, own } = anchor();
    if at < own {
        return std.checked_sub(own - at).unwrap_or(std);
    }
    let mut ahead = at - own;
    loop {
        if let Some(instant) = std.checked_add(ahead) {
            return instant;
        }
        ahead /= 2;
    }
}

/// Converts an instant of the standard library to a point in time, and saturates; see the [module's
/// documentation](self) for the error. Costs an addition; the first call reads two clocks.
pub fn from_std(at: time::Instant) -> Instant {
    let Anchor { std, own } = anchor();
    match at.checked_duration_since(std) {
        Some(ahead) => own + ahead,
        None => own - std.duration_since(at),
    }
}
