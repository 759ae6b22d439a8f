//! Points in time, ticks, and conversions to the standard library's instants.
//!
//! An [`Instant`] is a point on the timers' clock: [`Timers::now`](crate::Timers::now) reads it,
//! and deadlines are given on it. That clock counts nanoseconds from the system's start, and is
//! never set. The time between two instants is a [`Duration`](std::time::Duration).
//!
//! # The standard library's instants
//!
//! For frameworks whose interfaces take a [`std::time::Instant`] there are [`to_std`] and
//! [`from_std`]. They convert by one pair of readings, taken once per process: first of the
//! standard library's clock, then of the system's. The error is the time between the two: two
//! readings of a clock, unless the thread lost its CPU in between. It is the same for every
//! conversion, so durations are exact, and a deadline that [`from_std`] converts is late by it,
//! never early.
//!
//! The two clocks may also drift apart. Where timers run on the CPU's counter, they stay within a
//! few parts per million of each other until the system is suspended; after that they differ by
//! what the counter counted meanwhile. So a program that compares instants should take all of them
//! from one clock: `to_std(timers.now())`.
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

pub use tickless_core::time::{Instant, Tick, TickError};

use crate::platform::per_process::PerProcess;
use crate::platform::system_clock::system_now;
use std::time;

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    std: time::Instant,
    own: Instant,
}

/// The same for the whole process, so that every conversion gives the same answer. The system's
/// clock is read last: a deadline of `std`'s is late by the time between the two readings, at most,
/// and never early.
fn anchor() -> Anchor {
    // Not a `OnceLock`: a child that is forked while another thread is in it would wait forever.
    static ANCHOR: PerProcess<Anchor> = PerProcess::new();
    let read_clocks = || Anchor { std: time::Instant::now(), own: system_now().into() };
    ANCHOR.get(|_| true, || Some(read_clocks())).copied().unwrap_or_else(read_clocks)
}

/// The standard library's instant for a point in time; its error is in the
/// [module's documentation](self). Saturates at the earliest and the latest instant that the
/// standard library can express.
///
/// Costs an addition; the first call of a process reads two clocks.
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

/// The point in time for an instant of the standard library; its error is in the [module's
/// documentation](self). Saturates at [`Instant::ZERO`] for instants before the system's start, and
/// at [`Instant::NEVER`].
///
/// Costs an addition; the first call of a process reads two clocks.
pub fn from_std(at: time::Instant) -> Instant {
    let Anchor { std, own } = anchor();
    match at.checked_duration_since(std) {
        Some(ahead) => own + ahead,
        None => own - std.duration_since(at),
    }
}
