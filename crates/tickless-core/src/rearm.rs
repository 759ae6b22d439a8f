//! What the event device must be told, decided apart from telling it.
//!
//! A base owns one event device: a deadline register, a timerfd, a thread that sleeps. Writing
//! it is the expensive part of arming a timer, and a removal used to cost one write too many. Here
//! every operation on a base *returns* what the device must be told, as a [`Rearm`] that cannot
//! be ignored, and the one place that holds the lock does the telling.
//!
//! # Guarantees
//!
//! - R1 Outside the handler and hang back-off, `armed` is at or before the earliest expiry.
//! - R2 A removal that does not program leaves `armed` where it is.
//! - R3 Removing a timer of another CPU never touches that CPU's device.
//! - R4 A restart of the first timer writes at most once (not under [`Policy::Eager`]), and not
//!   at all if the earliest expiry is where the device stands.
//! - R5 In the handler nothing is written; one write at the end.
//! - R7 A handler that cannot catch up backs off, for a bounded time.
//! - R8 Nothing pushes an event ahead that could not have come any earlier.
//! - R11 A deadline outside of the device's limits is clamped, never lost.
//! - R13 A write that the device refuses is tried again, farther ahead; an event that it loses
//!   costs the time until somebody next looks at the base, or finds it overdue; all are counted.
//! - R14 A handler that puts off leaves nothing armed, and what settles it arms for the earliest.
//!
//! Who looks at `armed`: whoever holds the base's lock. It is kept apart from the queue's
//! minimum on purpose; early is free, late is a bug.

mod counts;
mod limits;
mod policy;

use crate::time::{CpuId, Ns};

pub use counts::DeviceCounts;
pub use limits::Limits;
pub use policy::{HandlerEnd, LazyTimers, Policy, Urgency};

/// What is to be done about an event device. Dropping it loses a wakeup.
#[must_use = "an event device that is not told loses a wakeup"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rearm {
    /// Nothing: the device stands where it should.
    Keep,
    /// Program the device for this time; [`Ns::NEVER`] stops it.
    Arm(Ns),
    /// Make that CPU look at its base.
    Kick(CpuId),
}

/// Whose device it is, seen from the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locality {
    /// That of the CPU the caller runs on.
    Local,
    /// Another CPU's.
    Remote,
}

/// Where the handler stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The device waits for `armed`.
    Waiting,
    /// The same, but it could not come as early as was asked for (R8, R11).
    Forced,
    /// `armed` is the end of a back-off (R7).
    BackingOff,
    /// The handler runs; `armed` counts as never (R5).
    Handling,
    /// It has ended and left the device to [`Device::settle`]; `armed` counts as never.
    Deferred,
}

/// What a base knows of its event device. Used under the base's lock.
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
    /// A device that is not armed.
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

    /// The same device with what Linux 7.1 adds.
    #[must_use]
    pub const fn with(self, lazy_timers: LazyTimers, handler_end: HandlerEnd) -> Device {
        Device { lazy_timers, handler_end, ..self }
    }

    /// Its policy.
    #[inline]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What it is armed for; [`Ns::NEVER`] in the handler.
    pub fn armed(&self) -> Ns {
        self.armed
    }

    /// Does the promise `armed <= earliest` (R1) hold just now?
    pub fn promises(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Is its handler running?
    pub fn is_handling(&self) -> bool {
        self.phase == Phase::Handling
    }

    /// What it was put through.
    pub fn counts(&self) -> DeviceCounts {
        self.counts
    }

    /// An idle timer was armed to expire at `expiry`. `now` is asked only if the device is to be
    /// told.
    #[inline(always)]
    pub fn started(&mut self, expiry: Ns, now: impl FnOnce() -> Ns) -> Rearm {
        if expiry >= self.armed || self.is_settled() {
            Rearm::Keep
        } else {
            self.move_to(expiry, now())
        }
    }

    /// A pending timer that would have expired at `expiry` was taken off. `earliest` and `now`
    /// are asked only when the policy wants to know: neither is free.
    #[inline]
    pub fn removed(
        &mut self,
        expiry: Ns,
        place: Locality,
        earliest: impl FnOnce() -> Ns,
        now: impl FnOnce() -> Ns,
    ) -> Rearm {
        if self.policy == Policy::Lazy || !self.stands_on(expiry, place) {
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
        if !self.stands_on(old, place) {
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

    /// Does it stay where it is when a pending timer of this urgency is taken off?
    #[inline]
    pub fn spares(&self, urgency: Urgency) -> bool {
        urgency == Urgency::Lazy && self.lazy_timers == LazyTimers::Honoured
    }

    /// Programs it once for all that has come since its handler ended without doing so; nothing
    /// otherwise.
    ///
    /// Every way from a handler back to a program must come through here, if handlers put off.
    pub fn settle(&mut self, earliest: Ns, now: Ns) -> Rearm {
        if self.phase != Phase::Deferred {
            return Rearm::Keep;
        }
        self.phase = Phase::Waiting;
        self.move_to(earliest, now)
    }

    /// The device delivered an event, or was made to look: the handler begins.
    pub fn enter(&mut self, now: Ns) {
        self.counts.late += u64::from(now > self.armed.after(self.limits.tolerance));
        self.armed = Ns::NEVER;
        self.phase = Phase::Handling;
        self.entered = now;
        self.counts.events += 1;
    }

    /// The handler ends, having expired `expired` timers; `earliest` is what is left.
    ///
    /// Every way out of a handler must come through here (R6).
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

    /// May a handler that has made `passes` passes make another?
    pub fn may_pass(&self, passes: u32) -> bool {
        passes < self.limits.passes
    }

    /// The handler, which has expired `expired` timers, gives up catching up: the device is left
    /// alone for as long as the handler took, at most `backoff_max` (R7).
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

    /// The device was switched off and has forgotten what it was told; in the handler it was
    /// told nothing. A back-off is over: what it was about has been away as well.
    pub fn forget(&mut self) {
        if self.phase != Phase::Handling {
            self.armed = Ns::NEVER;
            self.phase = Phase::Waiting;
        }
    }

    /// Should it have come longer ago than `grace`? Then its event was lost, or is very late.
    /// Whoever asks makes the base look, so it is counted (R13).
    pub fn is_overdue(&mut self, now: Ns, grace: Ns) -> bool {
        let is_overdue = self.armed.after(grace) < now;
        self.counts.lost += u64::from(is_overdue);
        is_overdue
    }

    /// The device has refused what it was told, as being too near or over. What it is to be told
    /// instead, farther ahead with each try; `None` if it cannot be had, and will only be told
    /// again by the next handler (R13).
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

    /// Must the device be left alone, whatever is asked?
    #[inline]
    fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Handling | Phase::BackingOff | Phase::Deferred)
    }

    /// Is the device armed for this expiry, and ours to program? One that is to come as soon as
    /// it can is left to come: alternating starts and removals must not push it ahead (R8).
    #[inline]
    fn stands_on(&self, expiry: Ns, place: Locality) -> bool {
        place == Locality::Local && self.phase == Phase::Waiting && expiry == self.armed
    }

    /// Apart: most operations end before they come here, and are short without it.
    #[inline(never)]
    fn move_to(&mut self, expiry: Ns, now: Ns) -> Rearm {
        if expiry == self.armed {
            return Rearm::Keep;
        }
        let nearest = self.limits.reach(expiry, now);
        // An event that could not be had any earlier is left to come. A loop that keeps arming
        // deadlines within the minimum delta would else push it ahead of itself (R8), and
        // whoever waits for that very event would be late.
        if expiry < self.armed && self.armed <= nearest {
            self.phase = Phase::Forced;
            return Rearm::Keep;
        }
        self.program(expiry, now)
    }

    fn program(&mut self, expiry: Ns, now: Ns) -> Rearm {
        self.armed = self.limits.reach(expiry, now);
        if self.armed > expiry {
            self.phase = Phase::Forced;
            self.counts.forced += 1;
        }
        self.counts.writes += 1;
        Rearm::Arm(self.armed)
    }
}

/// How often a device that refuses is told anew, each time twice as far ahead: a second at last.
const TRIES: u32 = 20;
/// How far ahead it is told at first, if it has no minimum.
const FIRST_TRY: Ns = Ns::from_us(1);
