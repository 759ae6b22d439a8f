//! How a timer gets onto a base.
//!
//! A start takes the lock that the timer's word names, and a second one if the timer is to move
//! to another base. Between the two the timer is migrating, and nobody else touches it.
//!
//! # Guarantees
//!
//! - X2 A timer whose callback runs stays on its base, and with the runner that it has.
//! - X3 While a synchronous cancel waits for its callback, a timer is not armed.
//! - D8 Nothing is armed on a base that is offline, but for a timer whose callback still runs
//!   there; that one moves when the callback is over.
//! - R3, R4 What the device is told: see `rearm`.
//! - W1 What a caller takes for the present is a hint: it never moves a base's time beyond the
//!   platform's clock, so that a wrong one spoils no other timer.

use super::base::{Base, BaseState, Bases, Guard, Locked};
use super::family::{Arming, Family, PushingOut};
use crate::link::{Link, NewTimer, TimerRef};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::wheel::Wakes;
use crate::rearm::{Locality, Policy, Rearm};
use crate::state::{FiresIn, Life};
use crate::time::{CpuId, Ns, Window};

/// How a timer is to be armed, beside its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Does it keep a CPU awake? Coarse timers only.
    pub wakes: Wakes,
    /// The base it must be on; otherwise that of the caller's CPU. If that base is offline, it is
    /// on another one.
    pub pinned: Option<CpuId>,
    /// Who fires it, if expiry is deferred. Precise timers only; a change waits until no callback
    /// of the timer runs.
    pub fires_in: FiresIn,
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
    /// A timer whose callback runs and is waited for by a synchronous cancel, which has cancelled
    /// this arming as well (X3).
    Cancelled,
}

/// Why a timer was not armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
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

impl<P: Platform> Bases<P> {
    /// Arms a timer, or arms it anew, to fire within `window`. Coarse timers use the window's
    /// soft end as their deadline.
    ///
    /// A coarse timer that is pending and moves later is put off where it is by one
    /// compare-and-swap, whichever CPU asks; see [`PushOut::Lazy`](crate::queues::wheel::PushOut).
    /// It takes the lock if it is to be deferrable or not from now on, or on another base, or if
    /// its bucket is too coarse for what is left. Should two threads start one timer at once, and
    /// differ in that, then the later deadline may hold with what the other one asked for.
    ///
    /// All others take one lock, two if the timer was on another CPU's base. Waits for nothing else
    /// and allocates nothing. `now` may be a little old: a coarse timer is then rounded as if it
    /// were farther away. One that is yet to come counts as the present.
    #[inline]
    pub fn start<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        if self.push_out(timer, window, now, options) {
            return Ok(Started::Pending);
        }
        self.start_locked(timer, window, now, options)
    }

    /// The part of [`start`](Bases::start) that takes no lock: makes a pending coarse timer later.
    /// `false` if nothing has changed, because that takes the lock.
    #[inline]
    pub fn push_out<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> bool {
        let Options { wakes, pinned, pending, .. } = options;
        let (deadline, least) = (window.soft, &self.least);
        L::COARSE
            && self.may_push_out
            && pending == IfPending::Rearm
            && L::push_out(timer, PushingOut { deadline, now, wakes, pinned, least })
    }

    /// Arms a timer for the first time, on the base of the caller's CPU and with the default
    /// [`Options`]. Does what [`start`](Bases::start) does, and costs less: nobody else can arm it
    /// or cancel it meanwhile.
    #[inline]
    pub fn start_new<L: Family<P>>(&self, timer: NewTimer<P, L>, window: Window, now: Ns) {
        let here = self.here();
        let (timer, life) = timer.on(here);
        let mut state = self.base(here).state.lock();
        if !state.is_online {
            drop(state);
            self.start_new_elsewhere(timer, life, window, now);
            return;
        }
        state.counts.armed += 1;
        let (window, now) = (L::window(window), self.believe::<L>(&state, now));
        let Options { wakes, fires_in, .. } = Options::default();
        let arming = Arming { window, now, wakes, fires_in };
        let (_, armed) = L::enqueue(&mut state.queues, timer.node(), life, arming);
        if let Some(left) = self.announce(&mut state, timer, armed, window) {
            drop(state);
            self.finish(left);
        }
    }

    /// The same if that CPU is offline.
    #[cold]
    fn start_new_elsewhere<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        life: Life,
        window: Window,
        now: Ns,
    ) {
        // Relaxed: as in `NewTimer::on`.
        timer.word().store(life.word(), Ordering::Relaxed);
        // A timer that was not shut down is refused by nobody.
        let _ = self.start_elsewhere(timer, window, now, Options::default());
    }

    /// The same under the lock of the timer's base. The usual case by itself: a timer that is on
    /// the base where it is to be, or belongs to it, and a device that removals leave alone. It has
    /// a guard that stays where it is: one that is moved goes through memory in pieces, and reading
    /// it back as a whole stalls for longer than the rest of a start takes.
    #[inline(never)]
    fn start_locked<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        let here = self.here();
        let target = options.pinned.unwrap_or(here);
        // Acquire: as in `try_lock_timer`.
        let life = Life::from_word(timer.word().load(Ordering::Acquire));
        let (true, Some(base)) = (life.may_start_at(target), self.bases().get(target.index()))
        else {
            return self.start_elsewhere(timer, window, now, options);
        };
        match base.state.lock_usually() {
            Some(state) => self.start_under(state, timer, life, window, now, options),
            None => self.start_after_waiting(base, timer, life, window, now, options),
        }
    }

    /// The same if the base's lock is not had in the usual way.
    #[cold]
    #[inline(never)]
    fn start_after_waiting<L: Family<P>>(
        &self,
        base: &Base<P>,
        timer: TimerRef<P, L>,
        life: Life,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        self.start_under(base.state.lock(), timer, life, window, now, options)
    }

    /// The same under the lock of the base that the timer is on, or belongs to.
    #[inline(always)]
    fn start_under<L: Family<P>>(
        &self,
        mut state: Guard<'_, P>,
        timer: TimerRef<P, L>,
        life: Life,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        let is_usual = timer.word().load(Ordering::Relaxed) == life.word()
            && state.is_usual
            && !life.is_pending()
            && !(L::COARSE && state.queues.wheel.is_news(now));
        if !is_usual {
            return self.start_anew(state, timer, life, window, now, options);
        }
        let arming = self.arming::<L>(window, now, options);
        state.counts.armed += 1;
        let armed = L::insert(&mut state.queues, timer.node(), life, arming);
        if let Some(left) = self.announce_usually(&mut state, timer, armed, arming.window) {
            drop(state);
            self.finish(left);
        }
        Ok(Started::Idle)
    }

    /// The same for a timer that is pending, at a present that moves the base's clock on, or on a
    /// base that is not as usual: apart, so that the usual start makes no room for it.
    #[inline(never)]
    fn start_anew<L: Family<P>>(
        &self,
        mut state: Guard<'_, P>,
        timer: TimerRef<P, L>,
        life: Life,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        // Under the lock that the word names, the word does not change any more.
        let is_here = timer.word().load(Ordering::Relaxed) == life.word()
            && state.is_online
            && (!life.is_pending() || state.device.policy() == Policy::Lazy)
            && !self.changes_runner::<L>(life, options.fires_in);
        if !is_here {
            drop(state);
            return self.start_elsewhere(timer, window, now, options);
        }
        let mut arming = self.arming::<L>(window, now, options);
        let started = if life.is_pending() {
            if Self::keeps(timer, arming.window, options.pending) {
                return Ok(Started::Kept);
            }
            state.counts.rearmed += 1;
            Started::Pending
        } else {
            state.counts.armed += 1;
            Started::Idle
        };
        arming.now = self.believe::<L>(&state, now);
        let (_, armed) = L::enqueue(&mut state.queues, timer.node(), life, arming);
        if let Some(left) = self.announce(&mut state, timer, armed, arming.window) {
            drop(state);
            self.finish(left);
        }
        Ok(started)
    }

    /// What a timer's family has to know of these.
    #[inline(always)]
    fn arming<L: Family<P>>(&self, window: Window, now: Ns, options: Options) -> Arming {
        let fires_in = if self.defers { options.fires_in } else { FiresIn::Handler };
        Arming { window: L::window(window), now, wakes: options.wakes, fires_in }
    }

    /// Says to all others that a timer is on a list of the base whose lock is held, and tells the
    /// event device if that is not to come too late: then something may be left to be done without
    /// the lock.
    #[inline(always)]
    fn announce<L: Family<P>>(
        &self,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        armed: Life,
        window: Window,
    ) -> Option<Rearm> {
        if state.deferred.plain {
            return self.announce_usually(state, timer, armed, window);
        }
        publish(timer, armed, window);
        Some(self.tell_of(state, timer, armed))
    }

    /// The same if the device is told of every timer, and of nothing else.
    #[inline(always)]
    fn announce_usually<L: Family<P>>(
        &self,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        armed: Life,
        window: Window,
    ) -> Option<Rearm> {
        publish(timer, armed, window);
        // It is due no earlier than that, so mostly there is no need to know when.
        let armed_for = state.device.armed();
        let is_earlier = || L::expiry(&state.queues, timer.node()) < armed_for;
        let is_told = L::least_due(window) < armed_for && is_earlier();
        is_told.then(|| self.tell_of(state, timer, armed))
    }

    /// Tells the event device of a timer that has been armed, under a policy that has nothing to
    /// say about its removal if it was pending.
    #[inline(never)]
    fn tell_of<L: Family<P>>(
        &self,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        armed: Life,
    ) -> Rearm {
        // That of the word, as that of any timer which is on a list.
        let Some(cpu) = armed.pending_at() else { return Rearm::Keep };
        let due = L::expiry(&state.queues, timer.node());
        let new = self.expect::<L>(cpu, state, armed, due);
        let rearm = state.device.started(new, || self.present());
        self.carry_out(cpu, &mut state.device, rearm)
    }

    /// The present, as far as a caller is to be believed about it. Of what lies beyond the tick
    /// that a base has come to, the platform's clock knows more: it is read once a tick.
    #[inline]
    fn believe<L: Family<P>>(&self, state: &BaseState, now: Ns) -> Ns {
        if L::COARSE && state.queues.wheel.is_news(now) { self.not_ahead(now) } else { now }
    }

    #[cold]
    fn not_ahead(&self, now: Ns) -> Ns {
        now.min(self.present())
    }

    /// The present for an event device, read under the base's lock. A caller's is older by as long
    /// as it has waited for the lock: several that arm what has passed would write the device one
    /// after the other, each for a little earlier (R8).
    #[cold]
    fn present(&self) -> Ns {
        self.platform().now()
    }

    /// Starts a timer that is not on the base where it is to be, or was not just now, or which
    /// cannot be armed like any other.
    #[inline(never)]
    fn start_elsewhere<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        if let Some(cpu) = options.pinned
            && cpu.index() >= self.count()
        {
            return Err(StartError::NoSuchBase(cpu));
        }
        let here = self.here();
        let target = options.pinned.unwrap_or(here);
        let mut arming = self.arming::<L>(window, now, options);
        let window = arming.window;
        let (mut cpu, mut state, mut life) = self.lock_or_claim(timer, target)?;
        if life.is_shut() {
            return Err(StartError::Shut);
        }
        let runs = self.base(cpu).running.has(timer.address(), Ordering::Relaxed);
        if runs && life.is_being_cancelled() {
            state.counts.armed += 1;
            state.counts.cancelled += 1;
            // Release: as wherever a timer's word is written.
            timer.word().store(life.refused().word(), Ordering::Release);
            return Ok(Started::Cancelled);
        }
        let started = if life.is_pending() { Started::Pending } else { Started::Idle };
        if life.is_pending() && Self::keeps(timer, window, options.pending) {
            return Ok(Started::Kept);
        }
        if runs {
            arming.fires_in = life.fires_in();
        } else if cpu != target || !state.is_online {
            let left = self.take_out(cpu, &mut state, timer, life, || here);
            (cpu, state, life) = self.move_over(timer, life, state, left, target);
        }
        arming.now = self.believe::<L>(&state, arming.now);
        let place = if cpu == here { Locality::Local } else { Locality::Remote };
        let left = self.arm::<L>(cpu, &mut state, timer, life, arming, place, started);
        drop(state);
        self.finish(left);
        Ok(started)
    }

    /// Takes a timer that is on no list from the base whose lock is held to `target`, or, if
    /// that is offline, to the next one that is not.
    pub(crate) fn move_over<'a, L: Family<P>>(
        &'a self,
        timer: TimerRef<P, L>,
        life: Life,
        mut state: Guard<'a, P>,
        mut left: Rearm,
        mut target: CpuId,
    ) -> Locked<'a, P> {
        loop {
            let life = life.migrating_to(target);
            // Release: the node's fields, written under the old lock, are read under the new.
            timer.word().store(life.word(), Ordering::Release);
            drop(state);
            self.finish(left);
            state = self.base(target).state.lock();
            if state.is_online {
                state.counts.migrated += 1;
                return (target, state, life);
            }
            // One base is online at least, so this ends.
            left = Rearm::Keep;
            target = self.after(target);
        }
    }

    /// Arms a timer on a base whose lock is held, and which the timer is on or on its way to.
    #[expect(clippy::too_many_arguments, reason = "a struct would only rename them")]
    #[inline(always)]
    fn arm<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        life: Life,
        arming: Arming,
        place: Locality,
        started: Started,
    ) -> Rearm {
        state.counts.armed += u64::from(started == Started::Idle);
        state.counts.rearmed += u64::from(started == Started::Pending);
        let node = timer.node();
        // Each arm of this says by itself what comes of it: a value that is joined from several
        // would go through memory (see `start`).
        if life.is_pending() && state.device.policy() == Policy::Eager {
            let left = self.take_out_eagerly::<L>(cpu, state, node, life, place);
            let (due, life) = L::enqueue(&mut state.queues, node, life.idle(), arming);
            publish(timer, life, arming.window);
            let new = self.expect::<L>(cpu, state, life, due);
            return match state.device.started(new, || self.present()) {
                Rearm::Keep => left,
                rearm => self.carry_out(cpu, &mut state.device, rearm),
            };
        }
        let was_due = if life.is_pending() { L::expiry(&state.queues, node) } else { Ns::NEVER };
        let old = state.for_device::<L>(life, was_due);
        let (due, armed) = L::enqueue(&mut state.queues, node, life, arming);
        publish(timer, armed, arming.window);
        let new = self.expect::<L>(cpu, state, armed, due);
        let BaseState { queues, device, deferred, .. } = state;
        let now = || self.present();
        let rearm = if life.is_pending() {
            let earliest = || deferred.earliest(queues);
            device.restarted_as(life.urgency(), old, new, place, earliest, now)
        } else {
            device.started(new, now)
        };
        self.carry_out(cpu, device, rearm)
    }

    /// Is this a precise timer that is to be fired by another runner than the last time?
    #[inline]
    fn changes_runner<L: Family<P>>(&self, life: Life, fires_in: FiresIn) -> bool {
        self.defers && !L::COARSE && L::fires_in(life) != fires_in
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
            let fresh = fresh.never_armed();
            let claimed = fresh.migrating_to(target);
            // Acquire and Release: two first starts may race, and the loser goes by the
            // winner's word like everybody else.
            let (current, new) = (fresh.word(), claimed.word());
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if timer.word().compare_exchange(current, new, success, failure).is_ok() {
                return Ok((target, self.base(target).state.lock(), claimed));
            }
            if let Some(locked) = self.lock_timer(timer) {
                return Ok(locked);
            }
        }
    }

    fn keeps<L: Family<P>>(timer: TimerRef<P, L>, window: Window, pending: IfPending) -> bool {
        match pending {
            IfPending::Rearm => false,
            IfPending::Reduce => !L::is_earlier(timer.node(), window),
            IfPending::Leave => true,
        }
    }

    /// The removal in a restart under [`Policy::Eager`], which programs by itself, for nothing
    /// if the start that follows programs again.
    #[inline(never)]
    fn take_out_eagerly<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        node: L::Ref,
        life: Life,
        place: Locality,
    ) -> Rearm {
        let old = L::dequeue(&mut state.queues, node, life);
        let old = state.for_device::<L>(life, old);
        let BaseState { queues, device, deferred, .. } = state;
        let rearm = device.removed(old, place, || deferred.earliest(queues), || self.present());
        self.carry_out(cpu, device, rearm)
    }
}

/// A timer has been put onto a list of the base whose lock is held: says so to all others.
#[inline]
pub(crate) fn publish<P: Platform, L: Family<P>>(
    timer: TimerRef<P, L>,
    life: Life,
    window: Window,
) {
    // Release: pairs with the Acquire of whoever looks at the word without the lock.
    timer.word().store(life.word(), Ordering::Release);
    L::open(timer.node(), window);
}
