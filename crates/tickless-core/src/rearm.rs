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

use crate::time::{CpuId, Ns};

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

/// When a removal programs the device (R12).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Every removal of the first timer programs it, a restart as well: the kernel from
    /// commit 968320b (2010) on, as the report measured it that proposed lazy rearming.
    Eager,
    /// No removal programs it (lazy rearming). An event may come early, for nothing.
    #[default]
    Lazy,
    /// A cancel of the first timer programs, a restart is judged once, as a whole: what the
    /// kernel does today.
    RestartAware,
}

impl Policy {
    /// All of them, in the order in which tables show them.
    pub const ALL: [Policy; 3] = [Policy::Eager, Policy::Lazy, Policy::RestartAware];
}

/// What a timer wants of the event device, for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// The device follows it, as the policy says.
    #[default]
    Prompt,
    /// It is armed anew all the time and nearly always moves later, such as a scheduler's slice:
    /// the device need not follow. An event may come early, for nothing.
    Lazy,
}

/// Does the device treat lazy timers as such? Together with [`Policy::RestartAware`], as Linux 7.1
/// does for the timer of the scheduler's slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum LazyTimers {
    /// All timers are alike.
    #[default]
    Ignored,
    /// Removing a lazy timer programs nothing, and neither does pushing it out.
    Honoured,
}

/// When a handler's end programs the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum HandlerEnd {
    /// At once.
    #[default]
    Programs,
    /// Not at all: whoever runs the handler does so later, once, with [`Device::settle`], when the
    /// next task has been chosen and its timers are armed. Until then nothing programs it. Linux
    /// 7.1 does so where the architecture has a place for it.
    PutsOff,
}

/// What a device can and cannot do (R7, R8, R11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A deadline nearer than this is programmed this far ahead.
    pub min_delta: Ns,
    /// A deadline farther than this is programmed this far ahead; the event comes early.
    pub max_delta: Ns,
    /// After how many passes a handler that cannot catch up backs off.
    pub passes: u32,
    /// The longest back-off. Without one, such a handler ends and is to come back at once, so
    /// that its caller has a turn in between; that is no hang.
    pub backoff_max: Ns,
    /// An event that comes later than this after its time is counted as late (R13).
    pub tolerance: Ns,
}

impl Limits {
    /// No limit but the kernel's own 3 passes and 100 ms.
    pub const NONE: Limits = Limits {
        min_delta: Ns::ZERO,
        max_delta: Ns::NEVER,
        passes: 3,
        backoff_max: Ns::from_ms(100),
        tolerance: Ns::ZERO,
    };

    /// What a device is programmed for when it is to come at `expiry` (R11). Stopping it is
    /// always possible.
    fn reach(&self, expiry: Ns, now: Ns) -> Ns {
        if expiry == Ns::NEVER {
            return Ns::NEVER;
        }
        let farthest = now.after(self.max_delta);
        expiry.clamp(now.after(self.min_delta).min(farthest), farthest)
    }
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
    PutOff,
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

/// What a device was put through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DeviceCounts {
    /// Times it was programmed.
    pub writes: u64,
    /// Events it delivered.
    pub events: u64,
    /// Events that found nothing to do.
    pub spurious: u64,
    /// Deadlines that were too near or had passed, and were programmed a minimum delta ahead.
    pub forced: u64,
    /// Handlers that could not catch up.
    pub hangs: u64,
    /// Events that came later than is tolerated, or not at all, so that somebody else looked.
    pub late: u64,
    /// Times that somebody who looks after the base found an event long overdue.
    pub lost: u64,
    /// Writes that the device refused.
    pub refused: u64,
}

impl DeviceCounts {
    const ZERO: DeviceCounts = DeviceCounts {
        writes: 0,
        events: 0,
        spurious: 0,
        forced: 0,
        hangs: 0,
        late: 0,
        lost: 0,
        refused: 0,
    };

    /// The sum over two devices.
    #[must_use]
    pub fn plus(self, other: DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            writes: self.writes + other.writes,
            events: self.events + other.events,
            spurious: self.spurious + other.spurious,
            forced: self.forced + other.forced,
            hangs: self.hangs + other.hangs,
            lost: self.lost + other.lost,
            late: self.late + other.late,
            refused: self.refused + other.refused,
        }
    }

    /// What has come since an earlier look at the same device.
    #[must_use]
    pub fn since(self, earlier: DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            writes: self.writes - earlier.writes,
            events: self.events - earlier.events,
            spurious: self.spurious - earlier.spurious,
            forced: self.forced - earlier.forced,
            hangs: self.hangs - earlier.hangs,
            lost: self.lost - earlier.lost,
            late: self.late - earlier.late,
            refused: self.refused - earlier.refused,
        }
    }
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

    /// A pending timer was armed anew, from `old` to `new`; the policy judges the whole.
    ///
    /// Under [`Policy::Eager`] a restart is a removal and a start: use those.
    #[inline(always)]
    pub fn restarted(
        &mut self,
        old: Ns,
        new: Ns,
        place: Locality,
        earliest: impl FnOnce() -> Ns,
        now: impl FnOnce() -> Ns,
    ) -> Rearm {
        if self.policy == Policy::RestartAware && self.stands_on(old, place) {
            return self.move_to(earliest(), now());
        }
        self.started(new, now)
    }

    /// The same for a timer of this urgency. A lazy one that the device is armed for, and that
    /// moves later, leaves it where it is.
    #[inline]
    pub fn restarted_as(
        &mut self,
        urgency: Urgency,
        old: Ns,
        new: Ns,
        place: Locality,
        earliest: impl FnOnce() -> Ns,
        now: impl FnOnce() -> Ns,
    ) -> Rearm {
        if self.spares(urgency) && self.stands_on(old, place) && new >= self.armed {
            return Rearm::Keep;
        }
        self.restarted(old, new, place, earliest, now)
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
        if self.phase != Phase::PutOff {
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
        if self.handler_end == HandlerEnd::PutsOff {
            self.phase = Phase::PutOff;
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
        matches!(self.phase, Phase::Handling | Phase::BackingOff | Phase::PutOff)
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

/// Whose device it is, seen from the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locality {
    /// That of the CPU the caller runs on.
    Local,
    /// Another CPU's.
    Remote,
}
