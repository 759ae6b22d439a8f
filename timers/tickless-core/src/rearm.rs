//! Decides when to program an event device.
//!
//! A base owns one event device: a deadline register, a timerfd or a sleeping thread. Writing to it
//! is the expensive part of arming a timer, and in Linux a removal used to cost an unnecessary
//! write. Here every operation on a base *returns* what to do to the device, as a [`Rearm`] that
//! the compiler does not let the caller ignore. The caller, which holds the lock, does it.
//!
//! `docs/dev/contract.md` has the guarantees, under "Rearming the event device".
//!
//! `armed` is the time for which the device is programmed, and is used under the base's lock. It
//! can be earlier than the earliest expiry of a timer, for example after that timer was removed: a
//! device that fires early costs little, but one that fires late is a bug.

mod counts;
mod limits;
mod policy;

use crate::time::{CpuId, Ns};

pub use counts::DeviceCounts;
pub use limits::Limits;
pub use policy::{HandlerEnd, LazyTimers, Policy, Urgency};

/// What the caller must do to an event device. A caller that drops this value loses a wakeup.
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

/// The state of an event device and its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The device waits for `armed`.
    Waiting,
    /// The device waits for `armed`, which is later than requested because of its limits (R8, R11).
    Forced,
    /// `armed` is the end of a back-off: a pause after handlers that could not catch up (R7).
    BackingOff,
    /// The handler runs and programs the device at its end (R5); until then `armed` is `Ns::NEVER`.
    Handling,
    /// The handler has ended; [`Device::settle`] will program the device. `armed` is `Ns::NEVER`.
    Deferred,
}

/// What a base knows of its event device. Used under the base's lock.
// The fields that every start reads come first in memory, too.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Device {
    policy: Policy,
    lazy_timers: LazyTimers,
    handler_end: HandlerEnd,
    phase: Phase,
    armed: Ns,
    entered: Ns,
    limits: Limits,
    counts: DeviceCounts,
}

impl Device {
    /// Creates a device that is not armed.
    pub fn new(policy: Policy, limits: Limits) -> Device {
        Device {
            policy,
            lazy_timers: LazyTimers::Ignored,
            handler_end: HandlerEnd::Programs,
            limits,
            armed: Ns::NEVER,
            phase: Phase::Waiting,
            entered: Ns::ZERO,
            counts: DeviceCounts::default(),
        }
    }

    /// Sets two choices that Linux 7.1 added: see [`LazyTimers`] and [`HandlerEnd`].
    #[must_use]
    pub const fn with(self, lazy_timers: LazyTimers, handler_end: HandlerEnd) -> Device {
        Device { lazy_timers, handler_end, ..self }
    }

    /// When a removal programs the device.
    #[inline]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the time for which the device is armed; [`Ns::NEVER`] while the handler runs.
    pub fn armed(&self) -> Ns {
        self.armed
    }

    /// Returns whether the device must be armed for the earliest expiry or before it. Returns
    /// `false` while the handler or [`settle`](Self::settle) has yet to program the device, in a
    /// back-off, and if the device's limits delay the event.
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

    /// Records that an idle timer was armed to expire at `expiry`. Returns what to do to the
    /// device. Calls `now` only if the device perhaps has to be programmed.
    #[inline(always)]
    pub fn started(&mut self, expiry: Ns, now: impl FnOnce() -> Ns) -> Rearm {
        if expiry >= self.armed || self.is_settled() {
            Rearm::Keep
        } else {
            self.move_to(expiry, now())
        }
    }

    /// Records that a pending timer that would have expired at `expiry` was removed. Returns what
    /// to do to the device. Calls `earliest` and `now` only if the policy requires it.
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

    /// Records that a pending timer of this urgency was rearmed from `old` to `new`. Returns what
    /// to do to the device, at most one write. A lazy timer that moves later needs none.
    ///
    /// Under [`Policy::Eager`], call [`removed`](Self::removed) and [`started`](Self::started)
    /// instead: that policy can require a write for each of them.
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

    /// Programs the device if the last handler left that to its caller; does nothing otherwise.
    ///
    /// With [`HandlerEnd::Defers`], this must be called before every return from a handler to the
    /// interrupted program: otherwise the device stays unarmed.
    pub fn settle(&mut self, earliest: Ns, now: Ns) -> Rearm {
        if self.phase != Phase::Deferred {
            return Rearm::Keep;
        }
        self.phase = Phase::Waiting;
        self.move_to(earliest, now)
    }

    /// Records that the handler begins, because the device fired or another CPU kicked this one.
    pub fn enter(&mut self, now: Ns) {
        self.counts.late += u64::from(now > self.armed.after(self.limits.tolerance));
        self.armed = Ns::NEVER;
        self.phase = Phase::Handling;
        self.entered = now;
        self.counts.events += 1;
    }

    /// Records that the handler ends. It has expired `expired` timers, and `earliest` is the next
    /// expiry. Returns what to do to the device.
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

    /// Returns whether a handler that has made `passes` passes is allowed to make another one.
    pub fn may_pass(&self, passes: u32) -> bool {
        passes < self.limits.passes
    }

    /// Ends a handler that has expired `expired` timers but cannot catch up. The device fires again
    /// after a pause as long as the handler took, at most `backoff_max`.
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

    /// Records that the device was switched off and has lost its deadline. This also ends a
    /// back-off. In the handler the device has no deadline, so nothing changes.
    pub fn forget(&mut self) {
        if self.phase != Phase::Handling {
            self.armed = Ns::NEVER;
            self.phase = Phase::Waiting;
        }
    }

    /// Returns whether the device should have fired more than `grace` ago. If so, counts a lost
    /// event (R13); the caller must make the base run its handler.
    pub fn is_overdue(&mut self, now: Ns, grace: Ns) -> bool {
        let is_overdue = self.armed.after(grace) < now;
        self.counts.lost += u64::from(is_overdue);
        is_overdue
    }

    /// Returns whether operations must leave the device alone, because the handler, the end of a
    /// back-off or `settle` will program it.
    #[inline]
    fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Handling | Phase::BackingOff | Phase::Deferred)
    }

    /// Returns whether the device is on the caller's CPU and armed for this expiry. Returns `false`
    /// if the device's limits have delayed its deadline (`Forced`): if a removal changed that
    /// deadline, alternating starts and removals would delay the event for ever (R8).
    #[inline]
    fn is_armed_for(&self, expiry: Ns, place: Locality) -> bool {
        place == Locality::Local && self.phase == Phase::Waiting && expiry == self.armed
    }

    /// Programs the device for `expiry` unless it is armed for that already. Not inlined: most
    /// operations do not call this, and are shorter without it.
    #[inline(never)]
    fn move_to(&mut self, expiry: Ns, now: Ns) -> Rearm {
        if expiry == self.armed {
            return Rearm::Keep;
        }
        let nearest = self.limits.clamp(expiry, now);
        // The device already fires as soon as its limits allow: a write would delay the event (R8).
        if expiry < self.armed && self.armed <= nearest {
            self.phase = Phase::Forced;
            return Rearm::Keep;
        }
        self.program(expiry, now)
    }

    /// Arms the device for an expiry, or for later if the limits require a pause.
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
