//! One CPU's base, all bases together, and how a timer gets onto one.
//!
//! A base is a lock around a wheel (coarse timers), a queue (ranged, high-resolution timers)
//! and what is known of the event device; beside the lock stands the address of the timer whose
//! callback runs. A timer is armed on the base of the CPU that arms it, as the kernel does it:
//! that base's lock and lines are in the arming CPU's cache, and the lock has no second user.
//!
//! # Ground rules
//!
//! - Lock order: one base's lock at a time. Moving a timer means: mark it migrating under the
//!   old lock, let go, take the new lock.
//! - A timer whose callback runs stays on its base when it is armed again (X2), so that looking
//!   at one base is enough to know whether it runs, and it never overlaps itself.
//! - Nothing is called, woken or allocated under a lock.

pub use crate::family::{Arming, Family, Queues};
use crate::link::{Link, QueueLink, Timer, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queue::Window;
use crate::ranged::Ranged;
use crate::rearm::{Device, DeviceCounts, Limits, Place, Policy, Rearm};
use crate::state::Life;
use crate::tick::Tick;
use crate::time::{CpuId, Ns};
use crate::wheel::{PushOut, Wakes, Wheel};
use alloc::boxed::Box;

/// How the bases of one program or machine are set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The wheel's tick.
    pub tick: Tick,
    /// How pending coarse timers are pushed out.
    pub push_out: PushOut,
    /// When a removal programs the event device.
    pub policy: Policy,
    /// What the event devices can do.
    pub limits: Limits,
    /// Do coarse timers program the event device? Not in a kernel, whose wheel rides on a
    /// periodic tick that is itself a high-resolution timer.
    pub wheel: WheelEvents,
}

/// Who makes sure that the wheel is advanced in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WheelEvents {
    /// The event device, like everything else.
    #[default]
    Device,
    /// Somebody else's tick.
    Tick,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tick: Tick::MILLISECOND,
            push_out: PushOut::default(),
            policy: Policy::default(),
            limits: Limits::NONE,
            wheel: WheelEvents::default(),
        }
    }
}

/// All bases, one a CPU.
pub struct Bases<P: Platform> {
    platform: P,
    bases: Box<[Base<P>]>,
}

/// One CPU's base. On a line of its own: its neighbours belong to other CPUs.
#[repr(align(128))]
pub(crate) struct Base<P: Platform> {
    pub(crate) state: P::Lock<BaseState>,
    /// The address of the timer whose callback runs, or 0. Written under the lock; read
    /// without it by who cancels.
    pub(crate) running: P::Word,
}

/// What a base's lock guards.
pub(crate) struct BaseState {
    pub(crate) queues: Queues,
    pub(crate) device: Device,
    pub(crate) counts: BaseCounts,
}

/// What happened on a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BaseCounts {
    /// Idle timers that were armed.
    pub armed: u64,
    /// Pending timers that were armed anew.
    pub rearmed: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Armings that fired.
    pub fired: u64,
    /// Timers that were armed here and had been on another base before.
    pub migrated: u64,
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
pub struct BaseView {
    /// Coarse timers pending.
    pub coarse: usize,
    /// Ranged timers pending.
    pub ranged: usize,
    /// When its next timer is due.
    pub earliest: Ns,
    /// What the event device is armed for.
    pub armed: Ns,
    /// What happened on it.
    pub counts: BaseCounts,
    /// What its event device was put through.
    pub device: DeviceCounts,
    /// Pushed-out timers that were moved when their old bucket came due.
    pub relocated: u64,
}

/// How a timer is to be armed, beside its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Does it keep a CPU awake? Coarse timers only.
    pub wakes: Wakes,
    /// The base it must be on; otherwise that of the caller's CPU.
    pub pinned: Option<CpuId>,
    /// What happens to a timer that is pending already.
    pub pending: IfPending,
}

/// What an arming does to a timer that is pending already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IfPending {
    /// It is armed anew, to whatever time.
    #[default]
    Rearm,
    /// Only if that makes it earlier (the kernel's `timer_reduce`).
    Reduce,
    /// It is left alone: for a callback's own restart, when somebody was faster (R9).
    Leave,
}

/// What an arming found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// An idle timer, which is pending now.
    Idle,
    /// A pending timer, which was armed anew.
    Pending,
    /// A pending timer, which stays as it was: [`IfPending`] said so.
    Kept,
}

/// Why a timer was not armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// It has been shut down (X5). Make a new one.
    Shut,
    /// It was to be pinned to a CPU that has no base here.
    NoSuchBase(CpuId),
}

impl core::fmt::Display for StartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            StartError::Shut => f.write_str("the timer has been shut down; make a new one"),
            StartError::NoSuchBase(cpu) => {
                write!(f, "there is no base {}; pin to a CPU below the number of bases", cpu.0)
            }
        }
    }
}

impl core::error::Error for StartError {}

impl<P: Platform> core::fmt::Debug for Bases<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bases").field("count", &self.bases.len()).finish_non_exhaustive()
    }
}

impl<P: Platform> Bases<P> {
    /// `count` bases without any timer. Allocates; nothing afterwards does.
    pub fn new(platform: P, count: u16, settings: Settings) -> Bases<P> {
        let now = platform.now();
        let base = || Base {
            state: P::Lock::new(BaseState {
                queues: Queues {
                    wheel: Wheel::new(settings.tick, settings.push_out, now),
                    ranged: Ranged::new(),
                    events: settings.wheel,
                },
                device: Device::new(settings.policy, settings.limits),
                counts: BaseCounts::default(),
            }),
            running: P::Word::new(0),
        };
        Bases { platform, bases: (0..count.max(1)).map(|_| base()).collect() }
    }

    /// The world they live in.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.bases.len()
    }

    /// Arms a timer, or arms it anew, to fire within `window`. Coarse timers use the window's
    /// soft end as their deadline.
    ///
    /// Takes one lock, two if the timer was on another CPU's base; waits for nothing else and
    /// allocates nothing. `now` may be a little old: see [`Wheel::arm`].
    pub fn start<L: Family>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        if let Some(cpu) = options.pinned
            && cpu.index() >= self.bases.len()
        {
            return Err(StartError::NoSuchBase(cpu));
        }
        let window = Window::new(window.soft, window.hard);
        let here = self.here();
        let target = options.pinned.unwrap_or(here);
        let arming = Arming { window, now, wakes: options.wakes };
        // Acquire: as in `try_lock_timer`.
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        if life.is_migrating() || life.base() != Some(target) {
            return self.start_elsewhere(timer, arming, options.pending, here, target);
        }
        // The usual case by itself, with a guard that stays where it is: one that is moved goes
        // through memory in pieces, and reading it back as a whole stalls for longer than the
        // rest of a start takes.
        let mut state = self.base(target).state.lock();
        // Under the lock that the word names, the word does not change any more.
        if timer.word().load(Ordering::Relaxed) != life.word() {
            drop(state);
            return self.start_elsewhere(timer, arming, options.pending, here, target);
        }
        if life.is_shut() {
            return Err(StartError::Shut);
        }
        if life.is_pending() {
            if Self::keeps(timer, window, options.pending) {
                return Ok(Started::Kept);
            }
            if state.device.policy() != Policy::Eager
                && L::stays(&mut state.queues, timer.node(), arming)
            {
                // Due when it was due, so neither the device nor the timer's word has news.
                state.counts.rearmed += 1;
                return Ok(Started::Pending);
            }
        }
        let place = if target == here { Place::Here } else { Place::Elsewhere };
        let started = if life.is_pending() { Started::Pending } else { Started::Idle };
        let left = self.arm::<L>(target, &mut state, timer, life, arming, place, started);
        drop(state);
        self.finish(left);
        Ok(started)
    }

    /// Starts a timer that is not on the base where it is to be, or was not just now.
    #[inline(never)]
    fn start_elsewhere<L: Family>(
        &self,
        timer: TimerRef<P, L>,
        arming: Arming,
        pending: IfPending,
        here: CpuId,
        target: CpuId,
    ) -> Result<Started, StartError> {
        let (mut cpu, mut state, mut life) = self.lock_or_claim(timer, target)?;
        if life.is_shut() {
            return Err(StartError::Shut);
        }
        let started = if life.is_pending() { Started::Pending } else { Started::Idle };
        if life.is_pending() && Self::keeps(timer, arming.window, pending) {
            return Ok(Started::Kept);
        }
        if cpu != target && self.base(cpu).running.load(Ordering::Relaxed) != timer.address() {
            let left = self.take_out(cpu, &mut state, timer, life, || here);
            life = life.migrating_to(target);
            // Release: the node's fields, written under the old lock, are read under the new.
            timer.word().store(life.word(), Ordering::Release);
            drop(state);
            self.finish(left);
            (cpu, state) = (target, self.base(target).state.lock());
            state.counts.migrated += 1;
        }
        let place = if cpu == here { Place::Here } else { Place::Elsewhere };
        let left = self.arm::<L>(cpu, &mut state, timer, life, arming, place, started);
        drop(state);
        self.finish(left);
        Ok(started)
    }

    /// Arms a timer on a base whose lock is held, and which the timer is on or on its way to.
    #[expect(clippy::too_many_arguments, reason = "a struct would only rename them")]
    #[inline(always)]
    fn arm<L: Family>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        life: Life,
        arming: Arming,
        place: Place,
        started: Started,
    ) -> Rearm {
        state.counts.armed += u64::from(started == Started::Idle);
        state.counts.rearmed += u64::from(started == Started::Pending);
        let BaseState { queues, device, .. } = state;
        let (node, now) = (timer.node(), arming.now);
        // Each arm of this says by itself what comes of it: a value that is joined from several
        // would go through memory (see `start`).
        if life.is_pending() && device.policy() == Policy::Eager {
            let left = self.take_out_eagerly::<L>(cpu, state, node, life, now, place);
            let (new, life) = L::enqueue(&mut state.queues, node, life.idle(), arming);
            // Release: pairs with the Acquire of whoever looks at the word without the lock.
            timer.word().store(life.word(), Ordering::Release);
            return match state.device.started(new, now) {
                Rearm::Keep => left,
                rearm => self.carry_out(cpu, rearm),
            };
        }
        let old = if life.is_pending() { L::expiry(queues, node) } else { Ns::NEVER };
        let (new, armed) = L::enqueue(queues, node, life, arming);
        // Release: as above.
        timer.word().store(armed.word(), Ordering::Release);
        let rearm = if life.is_pending() {
            device.restarted(old, new, place, || queues.earliest(), now)
        } else {
            device.started(new, now)
        };
        self.carry_out(cpu, rearm)
    }

    /// A look at one base.
    pub fn view(&self, cpu: CpuId) -> Option<BaseView> {
        let state = self.bases.get(cpu.index())?.state.lock();
        Some(BaseView {
            coarse: state.queues.wheel.len(),
            ranged: state.queues.ranged.len(),
            earliest: state.queues.earliest(),
            armed: state.device.armed(),
            counts: state.counts,
            device: state.device.counts(),
            relocated: state.queues.wheel.relocated(),
        })
    }

    /// The base of the CPU that the caller runs on.
    #[inline]
    pub(crate) fn here(&self) -> CpuId {
        let cpu = self.platform.here();
        if cpu.index() < self.bases.len() { cpu } else { CpuId(cpu.0 % self.bases.len() as u16) }
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
    pub(crate) fn take_out<L: Family>(
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
        if state.device.policy() == Policy::Lazy {
            return Rearm::Keep;
        }
        let place = if cpu == here() { Place::Here } else { Place::Elsewhere };
        let earliest = || state.queues.earliest();
        let rearm = state.device.removed(expiry, place, earliest, || self.platform.now());
        self.carry_out(cpu, rearm)
    }

    /// Carries out, under the base's lock, what its device must be told.
    #[inline]
    pub(crate) fn carry_out(&self, cpu: CpuId, rearm: Rearm) -> Rearm {
        match rearm {
            Rearm::Arm(at) => self.platform.program(cpu, at),
            rest => rest,
        }
    }

    /// Carries out, without the lock, what was left to be done.
    #[inline]
    pub(crate) fn finish(&self, left: Rearm) {
        if let Rearm::Kick(cpu) = left {
            self.platform.kick(cpu);
        }
    }

    /// As [`lock_timer`](Self::lock_timer), but takes a timer without a base to `target`'s. Such
    /// a timer is migrating until it is armed, so that nobody sees it idle in between (R10).
    #[inline(always)]
    fn lock_or_claim<L: Link>(
        &self,
        timer: TimerRef<P, L>,
        target: CpuId,
    ) -> Result<Locked<'_, P>, StartError> {
        match self.lock_timer(timer) {
            Some(locked) => Ok(locked),
            None => self.claim(timer, target),
        }
    }

    #[cold]
    fn claim<L: Link>(
        &self,
        timer: TimerRef<P, L>,
        target: CpuId,
    ) -> Result<Locked<'_, P>, StartError> {
        loop {
            let fresh = Life::from_word(timer.word().load(Ordering::Relaxed));
            if fresh.is_shut() {
                return Err(StartError::Shut);
            }
            let claimed = Life::FRESH.migrating_to(target);
            // Acquire and Release: two first starts may race, and the loser goes by the
            // winner's word like everybody else.
            let (current, new) = (Life::FRESH.word(), claimed.word());
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if timer.word().compare_exchange(current, new, success, failure).is_ok() {
                return Ok((target, self.base(target).state.lock(), claimed));
            }
            if let Some(locked) = self.lock_timer(timer) {
                return Ok(locked);
            }
        }
    }

    fn keeps<L: Family>(timer: TimerRef<P, L>, window: Window, pending: IfPending) -> bool {
        match pending {
            IfPending::Rearm => false,
            IfPending::Reduce => !L::is_earlier(timer.node(), window),
            IfPending::Leave => true,
        }
    }

    /// The removal in a restart under [`Policy::Eager`], which programs by itself, for nothing
    /// if the start that follows programs again.
    #[inline(never)]
    fn take_out_eagerly<L: Family>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        node: L::Ref,
        life: Life,
        now: Ns,
        place: Place,
    ) -> Rearm {
        let BaseState { queues, device, .. } = state;
        let old = L::dequeue(queues, node, life);
        let rearm = device.removed(old, place, || queues.earliest(), || now);
        self.carry_out(cpu, rearm)
    }
}

/// A timer was taken to another base, or armed anew, while its lock was being taken.
struct Moved;

/// A timer's base, its state under the lock, and what the timer's word says.
pub(crate) type Locked<'a, P> =
    (CpuId, <<P as Platform>::Lock<BaseState> as Lock<BaseState>>::Guard<'a>, Life);

/// A coarse timer: 12 % late at most, cheap to arm, cancel and push out.
pub type CoarseTimer<P> = Timer<P, WheelLink>;
/// A high-resolution timer with a window in which it may fire.
pub type RangedTimer<P> = Timer<P, QueueLink>;
