//! One CPU's base, and all bases together.
//!
//! A base is a lock around a wheel (coarse timers), a queue (precise, high-resolution timers)
//! and what is known of the event device; beside the lock stands which callbacks it runs. A
//! timer is armed on the base of the CPU that arms it, as the kernel does it: that base's lock
//! and lines are in the arming CPU's cache, and the lock has no second user.
//!
//! # Ground rules
//!
//! - Lock order: one base's lock at a time. Moving a timer means: mark it migrating under the
//!   old lock, let go, take the new lock.
//! - A timer whose callback runs stays on its base when it is armed again (X2), so that looking
//!   at one base is enough to know whether it runs, and it never overlaps itself.
//! - Nothing is called, woken or allocated under a lock.
//! - One holding moves or looks at no more than [`HOLDING`](super::HOLDING) timers (W8). Whoever
//!   has more to do lets go and comes back; what it has not come to is where it was, and can be
//!   cancelled.

use super::expiry_thread::{Deferred, DeferredCounts};
use super::family::{Family, Queues, least_distances};
use super::running::Running;
use super::settings::{CoarseExpiry, Deferral, Settings};
use crate::histogram::Histogram;
use crate::link::{Link, QueueLink, Timer, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::wheel::{Levels, PushOut, Wheel};
use crate::queues::windows::PreciseQueue;
use crate::rearm::{Device, DeviceCounts, Locality, Policy, Rearm};
use crate::state::Life;
use crate::time::{CpuId, Instant, Ns};
use alloc::boxed::Box;

/// All bases, one a CPU.
pub struct Bases<P: Platform> {
    platform: P,
    bases: Box<[Base<P>]>,
    settings: Settings,
    /// Is expiry deferred?
    pub(crate) defers: bool,
    /// May pending coarse timers be put off without a lock? The order in which they were armed, and
    /// a device that follows each of them, take the lock.
    pub(crate) may_push_out: bool,
    /// How far ahead a deadline must lie for each level of the wheel to be fine enough.
    pub(crate) least: [Ns; 16],
    /// How many bases are online.
    pub(crate) online: P::Word,
}

/// One CPU's base. On a line of its own: its neighbours belong to other CPUs.
#[repr(align(128))]
pub(crate) struct Base<P: Platform> {
    pub(crate) state: P::Lock<BaseState>,
    /// The callbacks that run. Written under the lock; read without it by cancels.
    pub(crate) running: Running<P>,
    /// When the expiry thread is next needed, or earlier, never later (D4). Written under the
    /// lock; read without it by ticks (D1). Not kept up unless expiry is deferred.
    pub(crate) thread_next: P::Word,
}

/// What a base's lock guards.
pub(crate) struct BaseState {
    pub(crate) queues: Queues,
    pub(crate) device: Device,
    pub(crate) deferred: Deferred,
    pub(crate) counts: BaseCounts,
    pub(crate) late: Late,
    /// The most timers that one holding of the lock has moved or looked at.
    longest_holding: usize,
    /// Does anybody wait until a callback of this base is over, or is a runner to pause then?
    pub(crate) has_waiters: bool,
    /// Which runners are to pause after their callback: a bit for each.
    pub(crate) pauses: u8,
    /// May timers be armed here? Only those whose callback runs here, if not (X2).
    pub(crate) is_online: bool,
    /// Is it online, does the handler fire everything, and is the device told of everything? One
    /// question instead of two for every start.
    pub(crate) is_usual: bool,
}

/// What happened on a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BaseCounts {
    /// Idle timers that were armed.
    pub armed: u64,
    /// Pending timers that were armed anew. Not those that were put off without a lock: a count
    /// would be a line of memory that all of them write.
    pub rearmed: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Armings that fired.
    pub fired: u64,
    /// Timers that came here from another base: armed here, or moved when that went offline.
    pub migrated: u64,
}

/// How long after their deadlines timers were found to be due, by family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Late {
    /// Coarse timers: what the wheel rounds by is in it, up to 13 % of the distance.
    pub coarse: Histogram,
    /// Precise timers, from the soft ends of their windows: slack is in it.
    pub precise: Histogram,
}

impl Late {
    /// The sum over two bases.
    #[must_use]
    pub fn plus(self, other: &Late) -> Late {
        let (coarse, precise) =
            (self.coarse.plus(&other.coarse), self.precise.plus(&other.precise));
        Late { coarse, precise }
    }
}

impl BaseCounts {
    /// The sum over two bases.
    #[must_use]
    pub fn plus(self, other: BaseCounts) -> BaseCounts {
        BaseCounts {
            armed: self.armed + other.armed,
            rearmed: self.rearmed + other.rearmed,
            cancelled: self.cancelled + other.cancelled,
            fired: self.fired + other.fired,
            migrated: self.migrated + other.migrated,
        }
    }
}

/// A look at one base, for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BaseView {
    /// Coarse timers pending.
    pub coarse: usize,
    /// Where in the wheel those are.
    pub levels: Levels,
    /// Precise timers pending.
    pub precise: usize,
    /// When its next timer is due; [`Instant::NEVER`] if none is.
    pub earliest: Instant,
    /// What the event device is armed for; [`Instant::NEVER`] if for nothing.
    pub armed: Instant,
    /// May timers be armed on it?
    pub is_online: bool,
    /// What happened on it.
    pub counts: BaseCounts,
    /// How late timers fired.
    pub late: Late,
    /// What its event device was put through.
    pub device: DeviceCounts,
    /// What its expiry thread was put through.
    pub deferred: DeferredCounts,
    /// Pushed-out timers that were moved when their old bucket came due.
    pub relocated: u64,
    /// The most timers that one holding of its lock has moved or looked at: at most
    /// [`HOLDING`](super::HOLDING).
    pub longest_holding: usize,
}

impl<P: Platform> core::fmt::Debug for Bases<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bases").field("count", &self.bases.len()).finish_non_exhaustive()
    }
}

impl<P: Platform> Bases<P> {
    /// `count` bases without any timer. Allocates; nothing afterwards does.
    pub fn new(platform: P, count: u16, settings: Settings) -> Bases<P> {
        let now = platform.now();
        let is_exact = settings.coarse == CoarseExpiry::AtDeadline;
        debug_assert!(!is_exact || settings.push_out == PushOut::Eager, "see CoarseExpiry");
        let wheel = || {
            let mut wheel = Wheel::new(settings.tick, now);
            if is_exact {
                wheel.make_exact();
            }
            wheel
        };
        let is_plain = Deferred::new(&settings).plain;
        let base = || Base {
            state: P::Lock::new(BaseState {
                queues: Queues {
                    wheel: wheel(),
                    precise: PreciseQueue::new(),
                    deferred: PreciseQueue::new(),
                },
                device: Device::new(settings.policy, settings.limits)
                    .with(settings.lazy_timers, settings.handler_end),
                deferred: Deferred::new(&settings),
                counts: BaseCounts::default(),
                late: Late::default(),
                longest_holding: 0,
                has_waiters: false,
                pauses: 0,
                is_online: true,
                is_usual: is_plain,
            }),
            running: Running::new(),
            thread_next: P::Word::new(Ns::NEVER.0),
        };
        let bases: Box<[Base<P>]> = (0..count.max(1)).map(|_| base()).collect();
        let online = P::Word::new(bases.len() as u64);
        let defers = settings.deferral != Deferral::None;
        let lazy = (settings.push_out, settings.policy) == (PushOut::Lazy, Policy::Lazy);
        let least = least_distances(settings.tick);
        Bases { platform, bases, settings, defers, may_push_out: lazy, least, online }
    }

    /// The world they live in.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// How they are set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.bases.len()
    }

    /// When a base's next timer is due; [`Ns::NEVER`] if none is, or there is no such base.
    pub fn next_event(&self, cpu: CpuId) -> Ns {
        self.bases.get(cpu.index()).map_or(Ns::NEVER, |base| base.state.lock().earliest())
    }

    /// A look at one base.
    pub fn view(&self, cpu: CpuId) -> Option<BaseView> {
        let state = self.bases.get(cpu.index())?.state.lock();
        let levels = state.queues.wheel.by_level();
        Some(BaseView {
            coarse: levels.total(),
            levels,
            precise: state.queues.precise.len() + state.queues.deferred.len(),
            earliest: state.earliest().into(),
            armed: state.device.armed().into(),
            is_online: state.is_online,
            counts: state.counts,
            late: state.late,
            device: state.device.counts(),
            deferred: state.deferred.counts(),
            relocated: state.queues.wheel.relocated(),
            longest_holding: state.longest_holding.max(usize::from(state.counts.armed > 0)),
        })
    }

    /// The base of the CPU that the caller runs on.
    #[inline]
    pub(crate) fn here(&self) -> CpuId {
        if self.bases.len() == 1 {
            return CpuId(0);
        }
        let cpu = self.platform.here();
        if cpu.index() < self.bases.len() { cpu } else { CpuId(cpu.0 % self.bases.len() as u16) }
    }

    /// The base that comes after this one, the first after the last.
    pub(crate) fn after(&self, cpu: CpuId) -> CpuId {
        CpuId((cpu.index() as u16 + 1) % self.bases.len() as u16)
    }

    #[inline]
    pub(crate) fn bases(&self) -> &[Base<P>] {
        &self.bases
    }

    #[inline]
    pub(crate) fn base(&self, cpu: CpuId) -> &Base<P> {
        &self.bases[cpu.index()]
    }

    /// Takes the lock that guards a timer. `None` if it has never been armed.
    #[inline(always)]
    pub(crate) fn lock_timer<L: Link>(&self, timer: TimerRef<P, L>) -> Option<Locked<'_, P>> {
        match self.try_lock_timer(timer) {
            Ok(locked) => locked,
            Err(Moved) => self.wait_for_timer(timer),
        }
    }

    /// Inlined: the tuple is too big to be returned in registers.
    #[inline(always)]
    fn try_lock_timer<L: Link>(
        &self,
        timer: TimerRef<P, L>,
    ) -> Result<Option<Locked<'_, P>>, Moved> {
        // Acquire: pairs with the Release of whoever moved the timer here.
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        if life.is_migrating() {
            return Err(Moved);
        }
        let Some(cpu) = life.base() else { return Ok(None) };
        let state = self.base(cpu).state.lock();
        // Under the lock that the word names, the word does not change any more.
        if timer.word().load(Ordering::Relaxed) == life.word() {
            Ok(Some((cpu, state, life)))
        } else {
            Err(Moved)
        }
    }

    #[cold]
    fn wait_for_timer<L: Link>(&self, timer: TimerRef<P, L>) -> Option<Locked<'_, P>> {
        let mut round = 0;
        loop {
            self.platform.relax(round);
            round = round.saturating_add(1);
            if let Ok(locked) = self.try_lock_timer(timer) {
                return locked;
            }
        }
    }

    /// Takes a timer off the base it is on, if it is pending. Another CPU's device is left
    /// alone (R3); it comes early, for nothing.
    #[inline]
    pub(crate) fn take_out<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        life: Life,
        here: impl FnOnce() -> CpuId,
    ) -> Rearm {
        if !life.is_pending() {
            return Rearm::Keep;
        }
        let expiry = L::dequeue(&mut state.queues, timer.node(), life);
        if state.device.policy() == Policy::Lazy || state.device.spares(life.urgency()) {
            return Rearm::Keep;
        }
        let expiry = state.for_device::<L>(life, expiry);
        let locality = if cpu == here() { Locality::Local } else { Locality::Remote };
        let BaseState { queues, device, deferred, .. } = state;
        let earliest = || deferred.earliest(queues);
        let rearm = device.removed(expiry, locality, earliest, || self.platform.now());
        self.carry_out(cpu, device, rearm)
    }
}

impl BaseState {
    pub(crate) fn come_online(&mut self) {
        self.is_online = true;
        self.is_usual = self.deferred.plain;
    }

    pub(crate) fn go_offline(&mut self) {
        self.is_online = false;
        self.is_usual = false;
    }

    /// When the event device must come, for whatever reason.
    #[inline]
    pub(crate) fn earliest(&self) -> Ns {
        self.deferred.earliest(&self.queues)
    }

    /// A holding of the lock has moved or looked at so many timers.
    #[inline]
    pub(crate) fn looked_at(&mut self, timers: usize) {
        if timers > self.longest_holding {
            self.longest_holding = timers;
        }
    }

    /// When the event device must come for a timer that is due at `due`.
    #[inline]
    pub(crate) fn for_device<L: Link>(&self, life: Life, due: Ns) -> Ns {
        self.deferred.for_device::<L>(life, due)
    }
}

/// A timer was taken to another base, or armed anew, while its lock was being taken.
struct Moved;

/// A base's state, as long as its lock is held.
pub(crate) type Guard<'a, P> = <<P as Platform>::Lock<BaseState> as Lock<BaseState>>::Guard<'a>;

/// A timer's base, its state under the lock, and what the timer's word says.
pub(crate) type Locked<'a, P> = (CpuId, Guard<'a, P>, Life);

/// A coarse timer: 13 % late at most, cheap to arm, cancel and push out.
pub type CoarseTimer<P> = Timer<P, WheelLink<<P as Platform>::Word>>;
/// A high-resolution timer with a window in which it may fire.
pub type RangedTimer<P> = Timer<P, QueueLink>;
