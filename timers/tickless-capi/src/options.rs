//! The options with which C starts a set of timers, and the numbers that stand for their choices.

use crate::sized::Grows;
use crate::status::{Outcome, Status, failure};
use std::time::Duration;
use tickless::time::Tick;
use tickless::{Builder, Timers};
use tickless_core::queues::wheel::PushOut;

/// `how`: pushing out a coarse timer (arming it for later) only writes to the timer, which moves to
/// its new bucket in the timer wheel when its old bucket comes due.
pub const TICKLESS_PUSH_OUT_LAZY: u32 = 0;
/// `how`: pushing out a coarse timer (arming it for later) moves it to its new bucket in the timer
/// wheel at once. Timers with equal deadlines then fire in the order of their arming.
pub const TICKLESS_PUSH_OUT_EAGER: u32 = 1;

/// `flags`: always read `CLOCK_MONOTONIC`, even where the CPU's counter is reliable.
pub const TICKLESS_SYSTEM_CLOCK: u32 = 1;
/// `flags`: keep each driver thread on its base's CPU.
pub const TICKLESS_PIN_DRIVERS: u32 = 2;
/// `flags`: callbacks of coarse timers, and of precise timers with `TICKLESS_DEFERRED`, run in an
/// expiry thread of their base, and are therefore allowed to take long. Otherwise all callbacks run
/// in the driver threads.
pub const TICKLESS_EXPIRY_THREADS: u32 = 4;

/// How to start timers. Set the whole struct to zero, then `size` to `sizeof(tickless_options_t)`;
/// zero selects the default of each field.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// `sizeof(tickless_options_t)`, so that a later version can add fields.
    pub size: usize,
    /// The tick of coarse timers in nanoseconds, 1,000 (1 us) to 1,000,000,000 (1 s). Default:
    /// 1 ms.
    pub tick_ns: u64,
    /// How long an expiry thread may spend in one callback before another thread fires the other
    /// timers of its base, in nanoseconds. Default: 100 ms.
    pub patience_ns: u64,
    /// The number of bases, each with a driver thread; at most 65,535. Default: one for each CPU
    /// that the process may use.
    pub bases: u32,
    /// `TICKLESS_SYSTEM_CLOCK`, `TICKLESS_PIN_DRIVERS`, `TICKLESS_EXPIRY_THREADS`, or several with
    /// `|`.
    pub flags: u32,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for Options {}

impl Options {
    pub(crate) fn builder(&self) -> Outcome<Builder> {
        let mut builder = Timers::builder().tick(tick(self.tick_ns)?);
        if self.patience_ns != 0 {
            builder = builder.patience(Duration::from_nanos(self.patience_ns));
        }
        if self.bases != 0 {
            let Ok(bases) = u16::try_from(self.bases) else {
                return Err(failure(Status::OutOfRange, "more than 65,535 bases"));
            };
            builder = builder.bases(bases);
        }
        let known = TICKLESS_SYSTEM_CLOCK | TICKLESS_PIN_DRIVERS | TICKLESS_EXPIRY_THREADS;
        if self.flags & !known != 0 {
            return Err(unknown("flag"));
        }
        if self.flags & TICKLESS_SYSTEM_CLOCK != 0 {
            builder = builder.system_clock();
        }
        if self.flags & TICKLESS_PIN_DRIVERS != 0 {
            builder = builder.pin_drivers();
        }
        if self.flags & TICKLESS_EXPIRY_THREADS != 0 {
            builder = builder.expiry_threads();
        }
        Ok(builder)
    }
}

pub(crate) fn push_out(number: u32) -> Outcome<PushOut> {
    match number {
        TICKLESS_PUSH_OUT_LAZY => Ok(PushOut::Lazy),
        TICKLESS_PUSH_OUT_EAGER => Ok(PushOut::Eager),
        _ => Err(unknown("push_out")),
    }
}

pub(crate) fn tick(ns: u64) -> Outcome<Tick> {
    if ns == 0 {
        return Ok(Tick::MILLISECOND);
    }
    Tick::new(Duration::from_nanos(ns))
        .ok_or_else(|| failure(Status::OutOfRange, "a tick lasts from 1 us to 1 s"))
}

#[cold]
pub(crate) fn unknown(field: &str) -> Status {
    let what = format!("this version of the library does not know this {field}");
    failure(Status::Unsupported, what)
}
