//! Decides when to program an event device.
//!
//! A base owns one event device: a deadline register, a timerfd or a sleeping thread. Writing to it
//! is the expensive part of arming a timer, and in Linux a removal used to cost an unnecessary
//! write. Here every operation on a base *returns* what to do to the device, as a [`Rearm`] that
//! the compiler does not let the caller ignore. The caller, which holds the lock, does it.
//!
//! # Guarantees
//!
//! - R1 Except in the handler and in a hang back-off, `armed` is at or before the earliest expiry.
//! - R2 A removal that does not program the device leaves `armed` unchanged.
//! - R3 Removing a timer of another CPU never programs that CPU's device.
//! - R4 A restart of the first timer writes at most once (except under [`Policy::Eager`]), and not
//!   at all if the device is armed for the earliest expiry.
//! - R5 The handler does not write to the device until its end, and then once.
//! - R7 A handler that cannot catch up backs off, for a bounded time.
//! - R8 No operation delays an event that could not have come any earlier.
//! - R11 A deadline outside the device's limits is clamped, never lost.
//! - R13 A write that the device refuses is repeated with a later deadline. An event that the
//!   device loses delays timers until the next event, or until another CPU finds the base overdue.
//!   All are counted.
//! - R14 A handler that defers leaves the device unarmed; `settle` arms it for the earliest expiry.
//!
//! `armed` is used under the base's lock. It is deliberately separate from the queue's minimum: a
//! device that fires early costs little, one that fires late is a bug.

mod counts;
mod limits;
mod policy;

use crate::time::{CpuId, Ns};

pub use counts::DeviceCounts;
pub use limits::Limits;
pub use policy::{HandlerEnd, LazyTimers, Policy, Urgency};

/// What to do to an event device. Dropping it loses a wakeup.
#[must_use = "an event device that is not programmed loses a wakeup"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rearm {
    /// Nothing.
    Keep,
    /// Program the device for this time; [`Ns::NEVER`] stops it.
    Arm(Ns),
    /// Make that CPU run the handler of its base.
    Kick(CpuId),
}

/// Whether a device belongs to the caller's CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locality {
    /// The caller runs on the device's CPU.
    Local,
    /// The caller runs on another CPU.
    Remote,
}

/// The state of a device and its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The device waits for `armed`.
    Waiting,
    /// The device waits for `armed`, which is later than requested because of its limits (R8, R11).
    Forced,
    /// `armed` is the end of a back-off: a pause after handlers that could not catch up (R7).
    BackingOff,
    /// The handler runs and will program the device at its end (R5); `armed` is never.
    Handling,
    /// The handler has ended and left the device to [`Device::settle`]; `armed` is never.
    Deferred,
}

/// A base's record of its event device. Used under the base's lock.
#[derive(Clone, Debug)]
pub struct Device {
    policy: Policy,
    lazy_timers: LazyTimers,
    handler_end: HandlerEnd,
    limits: Limits,
    armed: Ns,
    phase: Phase,
    entered: Ns,
    counts: DeviceCounts,
}

impl Device {
    /// Creates a device that is not armed.
    pub const fn new(policy: Policy, limits: Limits) -> Device {
        Device {
            policy,
            lazy_timers: LazyTimers::Ignored,
            handler_end: HandlerEnd::Programs,
            limits,
            armed: Ns::NEVER,
            phase: Phase::Waiting,
            entered: Ns::ZERO,
            counts: DeviceCounts::ZERO,
        }
    }

    /// Sets the two choices that Linux 7.1 adds.
    #[must_use]
    pub const fn with(self, lazy_timers: LazyTimers, handler_end: HandlerEnd) -> Device {
        Device { lazy_timers, handler_end, ..self }
    }

    /// When a removal programs the device.
    #[inline]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The time for which the device is armed; [`Ns::NEVER`] in the handler.
    pub fn armed(&self) -> Ns {
        self.armed
    }

    /// Returns whether `armed <= earliest` (R1) must hold in the current state.
    pub fn promises(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Returns whether the handler is running.
    pub fn is_handling(&self) -> bool {
        self.phase == Phase::Handling
    }

    /// Counts of writes and events.
    pub fn counts(&self) -> DeviceCounts {
        self.counts
    }

    /// An idle timer was armed to expire at `expiry`. Calls `now` only if the device may have to be
    /// programmed.
    #[inline(always)]
    pub fn started(&mut self, expiry: Ns, now: impl FnOnce() -> Ns) -> Rearm {
        if expiry >= self.armed || self.is_settled() {
            Rearm::Keep
        } else {
            self.move_to(expiry, now())
        }
    }

    /// A pending timer that would have expired at `expiry` was removed. Calls `earliest` and `now`
    /// only if the policy requires it.
    #[inline]
    pub fn removed(
        &mut self,
        expiry: Ns,
        place: Locality,
        earliest: impl FnOnce() -> Ns,
        now: impl FnOnce() -> Ns,
    ) -> Rearm {
        if self.policy == Policy::Lazy || !self.is_armed_for(expiry, place) {
            return Rearm::Keep;
        }
        self.move_to(earliest(), now())
    }

    /// A pending timer of this urgency was rearmed, from `old` to `new`. The policy judges both
    /// together. The device stays where it is for a lazy timer that moves later.
    ///
    /// Under [`Policy::Eager`] a restart is a removal and a start: use those.
    #[inline(always)]
    pub fn restarted(
        &mut self,
        urgency: Urgency,
        old: Ns,
        new: Ns,
        place: Locality,
        earliest: impl FnOnce() -> Ns,
        now: impl FnOnce() -> Ns,
    ) -> Rearm {
        if !self.is_armed_for(old, place) {
            return self.started(new, now);
        }
        if self.spares(urgency) && new >= self.armed {
            return Rearm::Keep;
        }
        match self.policy {
            Policy::RestartAware => self.move_to(earliest(), now()),
            Policy::Lazy | Policy::Eager => self.started(new, now),
        }
    }

    /// Returns whether the removal of a pending timer of this urgency leaves the device as it is.
    #[inline]
    pub fn spares(&self, urgency: Urgency) -> bool {
        urgency == Urgency::Lazy && self.lazy_timers == LazyTimers::Honoured
    }

    /// Programs the device after a handler has deferred it; does nothing otherwise.
    ///
    /// If handlers defer, every return from a handler to the interrupted program must call this.
    pub fn settle(&mut self, earliest: Ns, now: Ns) -> Rearm {
        if self.phase != Phase::Deferred {
            return Rearm::Keep;
        }
        self.phase = Phase::Waiting;
        self.move_to(earliest, now)
    }

    /// The handler begins, after an event or a kick.
    pub fn enter(&mut self, now: Ns) {
        self.counts.late += u64::from(now > self.armed.after(self.limits.tolerance));
        self.armed = Ns::NEVER;
        self.phase = Phase::Handling;
        self.entered = now;
        self.counts.events += 1;
    }

    /// The handler ends. It has expired `expired` timers, and `earliest` is the next expiry.
    ///
    /// Every exit from a handler must call this (R6).
    pub fn leave(&mut self, earliest: Ns, expired: u64, now: Ns) -> Rearm {
        if expired == 0 {
            self.counts.spurious += 1;
        }
        if self.handler_end == HandlerEnd::Defers {
            self.phase = Phase::Deferred;
            return Rearm::Keep;
        }
        self.phase = Phase::Waiting;
        self.move_to(earliest, now)
    }

    /// Returns whether a handler that has made `passes` passes may make another one.
    pub fn may_pass(&self, passes: u32) -> bool {
        passes < self.limits.passes
    }

    /// The handler, which has expired `expired` timers, cannot catch up and ends. The device fires
    /// again after as long as the handler took, at most `backoff_max` (R7).
    pub fn back_off(&mut self, earliest: Ns, expired: u64, now: Ns) -> Rearm {
        if self.limits.backoff_max == Ns::ZERO {
            return self.leave(earliest, expired, now);
        }
        let took = now.since(self.entered).min(self.limits.backoff_max);
        self.counts.hangs += 1;
        let rearm = self.program(now.after(took), now);
        self.phase = Phase::BackingOff;
        rearm
    }

    /// The device was switched off and has lost its deadline. This also ends a back-off. In the
    /// handler the device has no deadline, so nothing changes.
    pub fn forget(&mut self) {
        if self.phase != Phase::Handling {
            self.armed = Ns::NEVER;
            self.phase = Phase::Waiting;
        }
    }

    /// Returns whether the device should have fired more than `grace` ago: its event was lost, or
    /// is very late. The caller makes the base run its handler then, so this counts a lost event
    /// (R13).
    pub fn is_overdue(&mut self, now: Ns, grace: Ns) -> bool {
        let is_overdue = self.armed.after(grace) < now;
        self.counts.lost += u64::from(is_overdue);
        is_overdue
    }

    /// The device has refused a deadline that was too near or had passed. Returns the deadline to
    /// program instead, farther ahead with each try; `None` after the last try, when only the next
    /// handler programs the device again (R13).
    #[cold]
    pub fn refused(&mut self, tries: u32, now: Ns) -> Option<Ns> {
        self.counts.refused += 1;
        if tries >= TRIES || self.armed == Ns::NEVER {
            return None;
        }
        let delta = self.limits.min_delta.max(FIRST_TRY).0.saturating_mul(1 << tries);
        self.armed = self.armed.max(now).after(Ns(delta));
        self.phase = match self.phase {
            Phase::BackingOff => Phase::BackingOff,
            _ => Phase::Forced,
        };
        self.counts.writes += 1;
        Some(self.armed)
    }

    /// Returns whether the device must not be programmed in the current state.
    #[inline]
    fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Handling | Phase::BackingOff | Phase::Deferred)
    }

    /// Returns whether the device is armed for this expiry, and the caller may program it. A device
    /// that fires as soon as it can is left alone: alternating starts and removals must not delay
    /// it (R8).
    #[inline]
    fn is_armed_for(&self, expiry: Ns, place: Locality) -> bool {
        place == Locality::Local && self.phase == Phase::Waiting && expiry == self.armed
    }

    /// Not inlined: most operations do not call this, and are shorter without it.
    #[inline(never)]
    fn move_to(&mut self, expiry: Ns, now: Ns) -> Rearm {
        if expiry == self.armed {
            return Rearm::Keep;
        }
        let nearest = self.limits.clamp(expiry, now);
        // The event cannot come any earlier, so it is left alone. Otherwise a loop that keeps
        // arming deadlines within the minimum delta would delay it again and again (R8).
        if expiry < self.armed && self.armed <= nearest {
            self.phase = Phase::Forced;
            return Rearm::Keep;
        }
        self.program(expiry, now)
    }

    fn program(&mut self, expiry: Ns, now: Ns) -> Rearm {
        self.armed = self.limits.clamp(expiry, now);
        if self.armed > expiry {
            self.phase = Phase::Forced;
            self.counts.forced += 1;
        }
        self.counts.writes += 1;
        Rearm::Arm(self.armed)
    }
}

/// How often a device that refuses is programmed again, each time twice as far ahead: at last by a
/// second.
const TRIES: u32 = 20;
/// How far ahead the first try is, if the device has no minimum.
const FIRST_TRY: Ns = Ns::from_us(1);
