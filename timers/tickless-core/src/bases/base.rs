//! One CPU's base, and all bases together.
//!
//! A base is a lock around a wheel (coarse timers), a queue (precise, high-resolution timers) and
//! the state of the event device. Outside the lock, atomic words record which callbacks the base
//! runs. As in Linux, a timer is armed on the base of the CPU that arms it: that base's lock and
//! cache lines are in the arming CPU's cache, and other CPUs seldom take the lock.
//!
//! # Ground rules
//!
//! - Lock order: one base's lock at a time. To move a timer, a thread marks it as migrating under
//!   the old lock, unlocks, and takes the new lock.
//! - A timer whose callback runs stays on its base when it is rearmed (X2). So a check of one base
//!   shows whether the callback runs, and the callback never overlaps itself.
//! - Under a lock, no callback or system call is made, no thread is woken and no memory allocated,
//!   except for programming the event device.
//! - A thread moves or checks at most [`HOLDING`](super::HOLDING) timers while it holds a lock
//!   (W8). If there are more, it unlocks and continues later; until then the remaining timers stay
//!   on their lists and can be cancelled.

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
use once_cell::race::{OnceBool, OnceBox};

/// All bases, one a CPU.
// In memory, what every start uses comes first, with the first fields of the platform.
#[repr(C)]
pub struct Bases<P: Platform> {
    /// A base (2 KiB) is created at its first use, and its wheel's lists (80 KiB) when a coarse
    /// timer is first armed on it: on a machine with many CPUs a program often uses only some
    /// bases. The memory then belongs to the NUMA node of the CPU that uses it.
    bases: Box<[OnceBox<Base<P>>]>,
    platform: P,
    settings: Settings,
    /// The time at which the clock of each base's wheel begins.
    beginning: Ns,
    pub(crate) defers: bool,
    /// Whether a pending coarse timer is moved to a later deadline (pushed out) without a lock.
    /// False if the settings keep timers exactly in the order of arming, or keep the event device
    /// armed for the earliest timer even after removals: both require the lock.
    pub(crate) push_out_is_lazy: bool,
    /// See `least_distances`.
    pub(crate) least: [Ns; 16],
    pub(crate) online: P::Word,
}

/// One CPU's base. It has cache lines of its own, because other CPUs use the bases beside it.
#[repr(align(128))]
pub(crate) struct Base<P: Platform> {
    pub(crate) state: P::Lock<BaseState>,
    /// The callbacks that this base runs. Written under the lock; cancels read it without the lock.
    pub(crate) running: Running<P>,
    /// When the next timer of the expiry thread is due, or an earlier time, never a later one (D4).
    /// Written under the lock; ticks read it without the lock (D1). Only updated if the settings
    /// let an expiry thread fire timers, or a tick advance the wheel.
    pub(crate) thread_next: P::Word,
    /// Set when the wheel has its lists.
    has_lists: OnceBool,
}

// The order of the fields is that in memory: what each start and cancel uses comes first, on one
// cache line with the device's first fields, and then the queue. A program with many bases or sets
// that it uses in turn misses the cache for each line.
#[repr(C)]
pub(crate) struct BaseState {
    /// Whether a canceller waits for a callback of this base to return. Each runner (which executes
    /// callbacks) checks this after each of its callbacks.
    pub(crate) has_waiters: bool,
    /// Whether timers can be armed on this base. If not, only timers that run on it can be (X2).
    pub(crate) is_online: bool,
    /// Whether the base is online, has no expiry thread, and its event device fires for coarse
    /// timers, too. One flag for all three, so that every start makes one check. For precise
    /// timers; for coarse ones, the wheel also has its lists.
    is_plain: bool,
    is_plain_for_coarse: bool,
    pub(crate) counts: BaseCounts,
    pub(crate) device: Device,
    pub(crate) queues: Queues,
    pub(crate) deferred: Deferred,
    pub(crate) late: Late,
    /// The largest number of timers that a thread has moved or checked while it held the lock.
    longest_holding: usize,
}

const _: () = assert!(size_of::<BaseState>() <= 1_792, "half of it is two histograms");

/// Counts of what happened on a base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct BaseCounts {
    /// Idle timers that were armed.
    pub armed: u64,
    /// Pending timers that were rearmed. Timers that are moved later (pushed out) without a lock
    /// are not counted: all CPUs would have to write the same cache line for that.
    pub rearmed: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Armings that fired.
    pub fired: u64,
    /// Timers that came from another base: armed on this one, or moved when that base went offline.
    pub migrated: u64,
}

/// How long after their deadlines timers fired, for coarse and for precise timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Late {
    /// Coarse timers. Includes the wheel's rounding: up to 13 % of the time to the deadline.
    pub coarse: Histogram,
    /// Precise timers. Counts from the start of the window, so it includes the window's length.
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

/// A snapshot of one base, for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BaseView {
    /// The number of pending coarse timers.
    pub coarse: usize,
    /// The number of coarse timers on each level of the wheel.
    pub levels: Levels,
    /// The number of pending precise timers.
    pub precise: usize,
    /// When the next timer is due; [`Instant::NEVER`] if none is pending.
    pub earliest: Instant,
    /// When the event device is armed to fire; [`Instant::NEVER`] if it is not armed.
    pub armed: Instant,
    /// Whether timers can be armed on the base.
    pub is_online: bool,
    /// Armings, cancels, expiries and moves.
    pub counts: BaseCounts,
    /// How late timers fired.
    pub late: Late,
    /// Writes and events of the event device.
    pub device: DeviceCounts,
    /// Wakeups and batches of the expiry thread.
    pub deferred: DeferredCounts,
    /// How often a timer was moved to another bucket when its bucket came due, because its deadline
    /// had been moved later (pushed out) or is beyond the wheel's reach.
    pub relocated: u64,
    /// The largest number of timers that a thread has moved or checked while it held the base's
    /// lock: at most [`HOLDING`](super::HOLDING).
    pub longest_holding: usize,
}

impl BaseView {
    /// The view of a base on which no timer has been armed yet.
    fn unused() -> BaseView {
        BaseView {
            coarse: 0,
            levels: Levels::default(),
            precise: 0,
            earliest: Instant::NEVER,
            armed: Instant::NEVER,
            is_online: true,
            counts: BaseCounts::default(),
            late: Late::default(),
            device: DeviceCounts::default(),
            deferred: DeferredCounts::default(),
            relocated: 0,
            longest_holding: 0,
        }
    }
}

impl<P: Platform> Base<P> {
    fn new(settings: &Settings, beginning: Ns) -> Base<P> {
        // SAFETY: a start of a coarse timer finds `is_plain_for_coarse`, or calls `base_for`.
        #[expect(unsafe_code, reason = "most bases of a program have no coarse timers")]
        let mut wheel = unsafe { Wheel::without_lists(settings.tick, beginning) };
        if settings.coarse == CoarseExpiry::AtDeadline {
            wheel.make_exact();
        }
        let queues = Queues { wheel, precise: PreciseQueue::new(), deferred: PreciseQueue::new() };
        let device = Device::new(settings.policy, settings.limits)
            .with(settings.lazy_timers, settings.handler_end);
        let deferred = Deferred::new(settings);
        let state = BaseState {
            queues,
            device,
            is_plain: deferred.plain,
            is_plain_for_coarse: false,
            deferred,
            counts: BaseCounts::default(),
            late: Late::default(),
            longest_holding: 0,
            has_waiters: false,
            is_online: true,
        };
        Base {
            state: P::Lock::new(state),
            running: Running::new(),
            thread_next: P::Word::new(Ns::NEVER.0),
            has_lists: OnceBool::new(),
        }
    }

    /// Gives the wheel lists, which are allocated without the lock.
    #[cold]
    fn add_lists(&self) {
        let lists = Wheel::new_lists();
        let mut state = self.state.lock();
        let unused = state.queues.wheel.add_lists(lists);
        state.is_plain_for_coarse = state.is_plain;
        drop(state);
        drop(unused);
        // An error means that another thread has set it.
        let _ = self.has_lists.set(true);
    }
}

impl<P: Platform> core::fmt::Debug for Bases<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let used = self.bases.iter().filter_map(OnceBox::get);
        let wheels = used.clone().filter(|base| base.has_lists.get().is_some());
        f.debug_struct("Bases")
            .field("count", &self.count())
            .field("used", &used.count())
            .field("wheels", &wheels.count())
            .finish_non_exhaustive()
    }
}

impl<P: Platform> Bases<P> {
    /// Prepares `count` bases without timers. The first timer that is armed on a base allocates it,
    /// and the first coarse timer its wheel; other operations do not allocate.
    pub fn new(platform: P, count: u16, settings: Settings) -> Bases<P> {
        let is_exact = settings.coarse == CoarseExpiry::AtDeadline;
        debug_assert!(!is_exact || settings.push_out == PushOut::Eager, "see CoarseExpiry");
        let bases: Box<[OnceBox<Base<P>>]> = (0..count.max(1)).map(|_| OnceBox::new()).collect();
        let online = P::Word::new(bases.len() as u64);
        let defers = settings.deferral != Deferral::None;
        let push_out_is_lazy =
            (settings.push_out, settings.policy) == (PushOut::Lazy, Policy::Lazy);
        let least = least_distances(settings.tick);
        let beginning = platform.now();
        Bases { platform, bases, settings, beginning, defers, push_out_is_lazy, least, online }
    }

    /// Returns whether a pending coarse timer stays on its list when it gets a later deadline.
    #[inline]
    pub fn pushes_out_lazily(&self) -> bool {
        self.push_out_is_lazy
    }

    /// The platform on which the bases run.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// The settings of all bases.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of bases.
    pub fn count(&self) -> usize {
        self.bases.len()
    }

    /// When a base's next timer is due; [`Ns::NEVER`] if none is pending or no such base exists.
    pub fn next_event(&self, cpu: CpuId) -> Ns {
        self.used_base(cpu).map_or(Ns::NEVER, |base| base.state.lock().earliest())
    }

    /// Takes a snapshot of one base; `None` if it does not exist.
    pub fn view(&self, cpu: CpuId) -> Option<BaseView> {
        if cpu.index() >= self.count() {
            return None;
        }
        let Some(base) = self.used_base(cpu) else { return Some(BaseView::unused()) };
        let state = base.state.lock();
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

    /// Returns what the event device of a base has done so far: cheaper than a snapshot.
    pub fn device_counts(&self, cpu: CpuId) -> DeviceCounts {
        let base = if cpu.index() < self.count() { self.used_base(cpu) } else { None };
        base.map_or_else(DeviceCounts::default, |base| base.state.lock().device.counts())
    }

    /// Returns the base of the current CPU. CPUs beyond the last base share the bases.
    #[inline]
    pub(crate) fn here(&self) -> CpuId {
        if self.bases.len() == 1 {
            return CpuId(0);
        }
        let cpu = self.platform.here();
        if cpu.index() < self.bases.len() { cpu } else { CpuId(cpu.0 % self.bases.len() as u16) }
    }

    /// Returns the address of a base, to prefetch it, and creates it if necessary.
    #[doc(hidden)]
    pub fn address_of(&self, cpu: CpuId) -> usize {
        core::ptr::from_ref(self.base(cpu)).addr()
    }

    /// Does the same if that needs no call. The result possibly has no base.
    #[inline(always)]
    pub(super) fn try_here(&self) -> Option<CpuId> {
        if self.bases.len() == 1 { Some(CpuId(0)) } else { self.platform.try_here() }
    }

    /// The base after this one; after the last one, the first.
    pub(crate) fn after(&self, cpu: CpuId) -> CpuId {
        CpuId((cpu.index() as u16 + 1) % self.bases.len() as u16)
    }

    /// Returns a base, unless it does not exist or was never used.
    #[inline]
    pub(crate) fn used_base(&self, cpu: CpuId) -> Option<&Base<P>> {
        self.bases.get(cpu.index())?.get()
    }

    /// Returns the base that a timer's state names.
    ///
    /// # Safety
    /// The state was read from a timer that is used with these bases, and names a base.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a start and a cancel take six instructions less")]
    pub(super) unsafe fn base_of(&self, life: Life) -> &Base<P> {
        // SAFETY: a state names only bases that exist, and that were used before: each function
        // that writes a state which names a base has had a reference to that base.
        unsafe {
            let base = life.base().unwrap_unchecked().index();
            self.bases.get_unchecked(base).get().unwrap_unchecked()
        }
    }

    /// Returns a base, which is created when it is first used.
    #[inline]
    pub(crate) fn base(&self, cpu: CpuId) -> &Base<P> {
        let base = &self.bases[cpu.index()];
        base.get().unwrap_or_else(|| self.create_base(base))
    }

    #[cold]
    #[inline(never)]
    fn create_base<'a>(&'a self, base: &'a OnceBox<Base<P>>) -> &'a Base<P> {
        base.get_or_init(|| Box::new(Base::new(&self.settings, self.beginning)))
    }

    /// Returns a base on which a timer of this family can be armed. The caller holds no lock.
    #[inline]
    pub(crate) fn base_for<L: Family<P>>(&self, cpu: CpuId) -> &Base<P> {
        let base = self.base(cpu);
        if L::COARSE && base.has_lists.get().is_none() {
            base.add_lists();
        }
        base
    }

    /// Takes the lock that guards a timer. Waits while the timer is migrating. A timer that was
    /// never armed is claimed for the base `first`, if one is given: it is migrating until it is
    /// armed, so other threads never see it idle in between (R10). Returns `None` if the timer was
    /// never armed, and either `first` is `None` or the timer was shut down.
    pub(crate) fn lock_timer<L: Link>(
        &self,
        timer: TimerRef<P, L>,
        first: Option<CpuId>,
    ) -> Option<Locked<'_, P>> {
        let mut round = 0;
        loop {
            // Acquire: pairs with the Release of the thread that moved the timer to this base.
            let life = timer.life(Ordering::Acquire);
            if !life.is_migrating() {
                let Some(cpu) = life.base() else {
                    let first = first.filter(|_| !life.is_shut())?;
                    let claimed = life.migrating_to(first);
                    // Acquire and Release: of two threads that race for the first start, one fails
                    // here, and continues with the word that the other has written.
                    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
                    let (current, new) = (life.word(), claimed.word());
                    if timer.word().compare_exchange(current, new, success, failure).is_ok() {
                        return Some((first, self.base(first).state.lock(), claimed));
                    }
                    continue;
                };
                let state = self.base(cpu).state.lock();
                // The word is read again under the lock: if the word still names this base, it does
                // not change until the lock is released.
                if timer.life(Ordering::Relaxed) == life {
                    return Some((cpu, state, life));
                }
            }
            self.platform.relax(round);
            round = round.saturating_add(1);
        }
    }

    /// Takes a pending timer off its base; does nothing to a timer that is not pending. If this is
    /// another CPU's base, that CPU's event device is not programmed; the device can then fire
    /// early and find nothing due (R3).
    pub(crate) fn take_out<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        life: Life,
        locality: Locality,
    ) -> Rearm {
        if !life.is_pending() {
            return Rearm::Keep;
        }
        let expiry = L::dequeue(&mut state.queues, timer.node(), life);
        if state.device.policy() == Policy::Lazy || state.device.spares(life.urgency()) {
            return Rearm::Keep;
        }
        let expiry = state.for_device::<L>(life, expiry);
        let BaseState { queues, device, deferred, .. } = state;
        let earliest = || deferred.earliest(queues);
        let rearm = device.removed(expiry, locality, earliest, || self.platform.now());
        self.carry_out(cpu, rearm)
    }
}

impl BaseState {
    pub(crate) fn come_online(&mut self) {
        self.is_online = true;
        self.is_plain = self.deferred.plain;
        self.is_plain_for_coarse = self.is_plain && self.queues.wheel.has_lists();
    }

    pub(crate) fn go_offline(&mut self) {
        self.is_online = false;
        self.is_plain = false;
        self.is_plain_for_coarse = false;
    }

    #[inline]
    pub(crate) fn is_plain<L: Link>(&self) -> bool {
        if L::COARSE { self.is_plain_for_coarse } else { self.is_plain }
    }

    /// Returns `false` if no callback of this base runs. On a plain base only the handler runs
    /// callbacks, so that a cancel there reads one flag instead of a word for each runner.
    #[inline]
    pub(crate) fn may_run_callbacks<L: Link>(&self) -> bool {
        self.device.is_handling() || !self.is_plain::<L>()
    }

    #[inline]
    pub(crate) fn earliest(&self) -> Ns {
        self.deferred.earliest(&self.queues)
    }

    #[inline]
    pub(crate) fn record_holding(&mut self, timers: usize) {
        if timers > self.longest_holding {
            self.longest_holding = timers;
        }
    }

    #[inline]
    pub(crate) fn for_device<L: Link>(&self, life: Life, due: Ns) -> Ns {
        self.deferred.for_device::<L>(life, due)
    }
}

pub(crate) type Guard<'a, P> = <<P as Platform>::Lock<BaseState> as Lock<BaseState>>::Guard<'a>;

/// A timer's base, the base's state under the lock, and the timer's state.
pub(crate) type Locked<'a, P> = (CpuId, Guard<'a, P>, Life);

/// A coarse timer: at most 13 % late, cheap to arm, cancel and push out.
pub type CoarseTimer<P> = Timer<P, WheelLink<<P as Platform>::Word>>;
/// A high-resolution timer with a window: from its start the timer can fire, at its end it must.
pub type RangedTimer<P> = Timer<P, QueueLink>;
