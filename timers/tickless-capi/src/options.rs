//! The options with which C starts a set of timers, and the numbers that stand for their choices.

use crate::sized::Grows;
use crate::status::{Outcome, Status, failure};
use std::time::Duration;
use tickless::policy::{Deferral, Policy, PushOut};
use tickless::time::Tick;
use tickless::{Builder, Timers};

/// `policy`: cancelling the timer that is due next does not reprogram the driver thread, which then
/// perhaps wakes once without a timer to fire.
pub const TICKLESS_POLICY_LAZY: u32 = 0;
/// `policy`: cancelling the timer that is due next reprograms the driver thread. A restart of that
/// timer does so twice.
pub const TICKLESS_POLICY_EAGER: u32 = 1;
/// `policy`: cancelling the timer that is due next reprograms the driver thread. A restart of that
/// timer does so at most once.
pub const TICKLESS_POLICY_RESTART_AWARE: u32 = 2;

/// `push_out`: pushing out a timeout (arming it for later) only writes to the timer, which moves to
/// its new bucket in the timer wheel when its old bucket comes due.
pub const TICKLESS_PUSH_OUT_LAZY: u32 = 0;
/// `push_out`: pushing out a timeout (arming it for later) moves it to its new bucket in the timer
/// wheel at once. Timeouts with equal deadlines then fire in the order of their arming.
pub const TICKLESS_PUSH_OUT_EAGER: u32 = 1;

/// `deferral`: all callbacks run in the driver threads.
pub const TICKLESS_DEFERRAL_NONE: u32 = 0;
/// `deferral`: callbacks of coarse timers, and of precise timers with `TICKLESS_DEFERRED`, run in
/// an expiry thread of their base, and are therefore allowed to take long.
pub const TICKLESS_DEFERRAL_ON_EXPIRY: u32 = 1;
/// `deferral`: as `TICKLESS_DEFERRAL_ON_EXPIRY`, but every tick wakes the expiry thread. For
/// comparisons.
pub const TICKLESS_DEFERRAL_EVERY_TICK: u32 = 2;

/// `flags`: always read `CLOCK_MONOTONIC`, even where the CPU's counter is reliable.
pub const TICKLESS_SYSTEM_CLOCK: u32 = 1;
/// `flags`: keep each driver thread on its base's CPU.
pub const TICKLESS_PIN_DRIVERS: u32 = 2;

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
    /// With deferral: how long an expiry thread may spend in one callback before another thread
    /// fires the other timers of its base, in nanoseconds. Default: 100 ms.
    pub patience_ns: u64,
    /// The number of bases, each with a driver thread; at most 65,535. Default: one for each CPU
    /// that the process may use.
    pub bases: u32,
    /// One of `TICKLESS_POLICY_...`.
    pub policy: u32,
    /// One of `TICKLESS_PUSH_OUT_...`.
    pub push_out: u32,
    /// One of `TICKLESS_DEFERRAL_...`.
    pub deferral: u32,
    /// `TICKLESS_SYSTEM_CLOCK`, `TICKLESS_PIN_DRIVERS`, or both with `|`.
    pub flags: u32,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for Options {}

impl Options {
    pub(crate) fn builder(&self) -> Outcome<Builder> {
        let mut builder = Timers::builder()
            .tick(tick(self.tick_ns)?)
            .policy(self.policy()?)
            .push_out(push_out(self.push_out)?)
            .deferral(self.deferral()?);
        if self.patience_ns != 0 {
            builder = builder.patience(Duration::from_nanos(self.patience_ns));
        }
        if self.bases != 0 {
            let Ok(bases) = u16::try_from(self.bases) else {
                return Err(failure(Status::OutOfRange, "more than 65,535 bases"));
            };
            builder = builder.bases(bases);
        }
        if self.flags & !(TICKLESS_SYSTEM_CLOCK | TICKLESS_PIN_DRIVERS) != 0 || self.reserved != 0 {
            return Err(unknown("flag"));
        }
        if self.flags & TICKLESS_SYSTEM_CLOCK != 0 {
            builder = builder.system_clock();
        }
        if self.flags & TICKLESS_PIN_DRIVERS != 0 {
            builder = builder.pin_drivers();
        }
        Ok(builder)
    }

    fn policy(&self) -> Outcome<Policy> {
        match self.policy {
            TICKLESS_POLICY_LAZY => Ok(Policy::Lazy),
            TICKLESS_POLICY_EAGER => Ok(Policy::Eager),
            TICKLESS_POLICY_RESTART_AWARE => Ok(Policy::RestartAware),
            _ => Err(unknown("policy")),
        }
    }

    fn deferral(&self) -> Outcome<Deferral> {
        match self.deferral {
            TICKLESS_DEFERRAL_NONE => Ok(Deferral::None),
            TICKLESS_DEFERRAL_ON_EXPIRY => Ok(Deferral::OnExpiry),
            TICKLESS_DEFERRAL_EVERY_TICK => Ok(Deferral::EveryTick),
            _ => Err(unknown("deferral")),
        }
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
