//! Arming a timer.
//!
//! A start takes the lock of the base that the timer's word names, and a second lock if the timer
//! moves to another base. Between the two locks the timer is migrating, and other threads leave it
//! alone. `decide` decides what to do to the timer, and `arm_locked` does it.
//!
//! | the timer | function | cost |
//! |---|---|---|
//! | coarse, pending, and moves later | `push_out` | one compare-and-swap |
//! | idle, on the base on which it should be | `start_fast`, `start_slow` | one lock |
//! | pending, on another base, or never armed | `start_on_any_base` | one lock, or two |
//!
//! `docs/dev/contract.md` has the guarantees. The current time that a caller passes is a hint: it
//! never moves a base's time beyond the platform's clock, so a wrong value affects no other timer.

use super::base::{BaseState, Bases, Guard, Locked};
pub use super::decide::IfPending;
use super::decide::{Action, Operation, Seen};
use super::family::{Arming, Family};
use crate::link::{NewTimer, TimerRef};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::wheel::Wakes;
use crate::rearm::{Locality, Policy, Rearm};
use crate::state::{FiresIn, Held, Life};
use crate::time::{CpuId, Ns, Window};

/// How to arm a timer, apart from its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether the timer wakes an idle CPU when it is due. Coarse timers only.
    pub wakes: Wakes,
    /// The base on which to arm the timer, by default that of the caller's CPU. If that base is
    /// offline, the timer is armed on another one.
    pub pinned: Option<CpuId>,
    /// Where the callback runs if expiry is deferred. Precise timers only. An arming while the
    /// timer's callback runs does not change this.
    pub fires_in: FiresIn,
    /// What to do with a timer that is pending.
    pub pending: IfPending,
}

/// What an arming found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Started {
    /// The timer was idle and is pending now.
    Idle,
    /// The timer was pending and has been rearmed.
    Pending,
    /// The timer was pending and has not changed, as [`IfPending`] requested.
    Kept,
    /// The timer's callback runs, and a synchronous cancel waits for it. The cancel has cancelled
    /// this arming, too (X3).
    Cancelled,
}

/// Why a timer was not armed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The timer was shut down (X5). Create a new one.
    Shut,
    /// The timer is pinned to a CPU that has no base in this set of bases.
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
    /// Arms or rearms a timer to fire within `window`, of which a coarse timer uses the soft end.
    ///
    /// A pending coarse timer that moves later stays on its list and is pushed out by one
    /// compare-and-swap, from any CPU; see [`PushOut::Lazy`](crate::queues::wheel::PushOut). The
    /// start takes the lock even so if the timer becomes deferrable or ceases to be, if it moves to
    /// another base, or if its bucket is too coarse for the remaining time. If two threads start
    /// one timer concurrently with different options, the timer possibly gets the later deadline
    /// with the options of the other thread.
    ///
    /// All other starts take one lock, or two if the timer was on another CPU's base. They wait for
    /// nothing else and do not allocate. If `now` is slightly old, a coarse timer is rounded as if
    /// it were farther away. A `now` in the future counts as the current time.
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
        if options == Options::default() && self.start_fast(timer, window, now) {
            return Ok(Started::Idle);
        }
        self.start_slow(timer, window, now, options)
    }

    /// The part of [`start`](Bases::start) that takes no lock: pushes out a pending coarse timer.
    /// Returns `false`, and changes nothing, if that requires the lock.
    #[inline]
    pub fn push_out<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> bool {
        let Options { wakes, pinned, pending, .. } = options;
        let Some(node) = L::coarse(timer.node()) else { return false };
        if !self.push_out_is_lazy || pending != IfPending::Rearm {
            return false;
        }
        // Read the deadline before the state (`life`): then the state belongs to the same arming as
        // the deadline, or to a later arming.
        let from = node.read();
        let life = timer.life(Ordering::Relaxed);
        let may = life.is_pending_as(Held::from_bits(wakes as u64))
            // The new deadline must be far enough ahead for the level on which the timer is. Then
            // the bound on how late the timer fires is no larger than after a rearm under the lock.
            // If `now` is in the future, the distance seems shorter; at worst, the lock is taken.
            && window.soft.since(now) >= self.least[life.held_as().level()]
            && (pinned.is_none() || pinned == life.base());
        may && node.push_out(from, window.soft)
    }

    /// Arms a timer for the first time, on the base of the caller's CPU and with the default
    /// [`Options`]. Costs less than [`start`](Bases::start), because no other thread can arm or
    /// cancel the timer yet.
    #[inline]
    pub fn start_new<L: Family<P>>(&self, timer: NewTimer<P, L>, window: Window, now: Ns) {
        let here = self.here();
        let (timer, life) = timer.on(here);
        let state = self.base(here).state.lock();
        let options = Options::default();
        if state.is_plain::<L>() {
            self.arm_plain(state, timer, life, self.arming::<L>(window, options), now);
        } else {
            drop(state);
            // Relaxed: no other thread knows the timer. The start below publishes it.
            timer.word().store(life.word(), Ordering::Relaxed);
            // This never fails here: it refuses only a timer that was shut down.
            let _ = self.start_on_any_base(timer, window, now, options);
        }
    }

    /// Arms a timer with the default options that is idle on the caller's base, if that base is
    /// plain (see `BaseState::is_plain`) and used by no other thread. Otherwise returns `false` and
    /// changes nothing. It ends with the call of any other function, or calls none, so that the
    /// compiler keeps its values and the guard in registers.
    #[doc(hidden)]
    #[inline(always)]
    #[expect(unsafe_code, reason = "a base is not looked up twice")]
    pub fn start_fast<L: Family<P>>(&self, timer: TimerRef<P, L>, window: Window, now: Ns) -> bool {
        // Acquire: pairs with the Release of the thread that moved the timer to this base.
        let life = timer.life(Ordering::Acquire);
        if !self.try_here().is_some_and(|cpu| life.is_idle_at(cpu)) {
            return false;
        }
        // SAFETY: a timer is used with one set of bases, and an idle one is on a base.
        let Some(mut state) = unsafe { self.base_of(life) }.state.try_lock_fast() else {
            return false;
        };
        // Read again under the lock: see `lock_timer`.
        if timer.life(Ordering::Relaxed) != life || !state.is_plain::<L>() {
            return false;
        }
        let arming = self.arming::<L>(window, Options::default());
        // SAFETY: `is_idle_at` of what the word still holds.
        if !unsafe { L::try_enqueue(&mut state.queues, timer, arming, now) } {
            self.start_far(state, timer, window.soft, now);
            return true;
        }
        state.counts.armed += 1;
        // A timer is due at its window's end or later. So compute when exactly it is due only if
        // the window ends before the time for which the device is armed.
        let device_at = state.device.armed();
        if L::least_due(arming.window) < device_at
            && L::expiry(&state.queues, timer.node()) < device_at
        {
            self.update_device_after(state, timer);
        }
        true
    }

    /// [`start_fast`](Bases::start_fast) for a coarse timer, if the clock must be moved, or the
    /// deadline is not an ordinary one. The lock is held.
    #[cold]
    #[inline(never)]
    fn start_far<L: Family<P>>(
        &self,
        state: Guard<'_, P>,
        timer: TimerRef<P, L>,
        deadline: Ns,
        now: Ns,
    ) {
        let arming = self.arming::<L>(Window::at(deadline), Options::default());
        self.arm_plain(state, timer, timer.life(Ordering::Relaxed), arming, now);
    }

    /// The part of [`start`](Bases::start) after `push_out` and `start_fast`.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn start_slow<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        let target = options.pinned.unwrap_or_else(|| self.here());
        // Acquire: as in `start_fast`.
        let life = timer.life(Ordering::Acquire);
        if let Some(base) = self.used_base(target).filter(|_| life.is_idle_at(target)) {
            let state = base.state.lock();
            // Read again under the lock: see `lock_timer`.
            if timer.life(Ordering::Relaxed) == life && state.is_plain::<L>() {
                let arming = self.arming::<L>(window, options);
                self.arm_plain(state, timer, life, arming, now);
                return Ok(Started::Idle);
            }
        }
        self.start_on_any_base(timer, window, now, options)
    }

    /// Arms an idle timer on a plain base (see `BaseState::is_plain`), whose lock is held.
    #[inline(always)]
    fn arm_plain<L: Family<P>>(
        &self,
        mut state: Guard<'_, P>,
        timer: TimerRef<P, L>,
        life: Life,
        arming: Arming,
        now: Ns,
    ) {
        state.counts.armed += 1;
        self.forward::<L>(&mut state, now);
        L::enqueue(&mut state.queues, timer, life.idle(), arming);
        self.update_device_after(state, timer);
    }

    /// Updates the device after an idle timer has been armed, and unlocks.
    #[inline(never)]
    fn update_device_after<L: Family<P>>(&self, mut state: Guard<'_, P>, timer: TimerRef<P, L>) {
        if L::expiry(&state.queues, timer.node()) < state.device.armed() {
            let after_unlock =
                self.update_device(&mut state, timer, timer.life(Ordering::Relaxed), None);
            self.finish(state, after_unlock);
        }
    }

    /// Takes the lock of a timer's base, whatever base that is, and arms the timer.
    #[cold]
    #[inline(never)]
    fn start_on_any_base<L: Family<P>>(
        &self,
        timer: TimerRef<P, L>,
        window: Window,
        now: Ns,
        options: Options,
    ) -> Result<Started, StartError> {
        let target = options.pinned.unwrap_or_else(|| self.here());
        if target.index() >= self.count() {
            return Err(StartError::NoSuchBase(target));
        }
        self.base_for::<L>(target);
        let Some((cpu, mut state, life)) = self.lock_timer(timer, Some(target)) else {
            return Err(StartError::Shut);
        };
        let mut arming = self.arming::<L>(window, options);
        // A timer that is armed where its callback runs finds lists there, unless what runs is
        // another timer, which was freed and had the same address.
        if cpu != target && L::COARSE && !state.queues.wheel.has_lists() {
            drop(state);
            self.base_for::<L>(cpu);
            return self.start_on_any_base(timer, window, now, options);
        }
        let is_target = cpu == target && state.is_online;
        let changes_runner = self.defers && !L::COARSE && L::fires_in(life) != arming.fires_in;
        // Check only in these cases, because the check reads one word for each runner.
        let checks_running = !is_target || changes_runner || life.is_being_cancelled();
        let is_running =
            checks_running && self.base(cpu).running.has(timer.address(), Ordering::Relaxed);
        let keeps = options.pending == IfPending::Reduce
            && life.is_pending()
            && !L::is_earlier(timer.node(), arming.window);
        let pending = if keeps { IfPending::Leave } else { options.pending };
        let seen = Seen { is_running, is_target };
        let moves_to = match Operation::Start(pending).decide(life, seen) {
            Action::Refuse => return Err(StartError::Shut),
            Action::Keep | Action::Disarm(_) => return Ok(Started::Kept),
            Action::RefuseOnce(refused) => {
                state.counts.armed += 1;
                state.counts.cancelled += 1;
                timer.set_life(refused);
                return Ok(Started::Cancelled);
            }
            Action::Arm if is_running => {
                arming.fires_in = life.fires_in();
                None
            }
            Action::Arm => None,
            Action::Move => Some(target),
        };
        let (mut state, after_unlock) =
            self.arm_locked((cpu, state, life), timer, arming, now, moves_to);
        let was_pending = life.is_pending();
        state.counts.armed += u64::from(!was_pending);
        state.counts.rearmed += u64::from(was_pending);
        self.finish(state, after_unlock);
        Ok(if was_pending { Started::Pending } else { Started::Idle })
    }

    /// Arms a timer on the base whose lock is held, or on the base `moves_to` if there is one. If
    /// `moves_to` is offline, the timer moves to the next base that is online. Updates the event
    /// device. Returns the lock of the timer's base, and what the caller must do to the device
    /// after it has unlocked. `cpu` is the locked base, and `life` the timer's state.
    pub(super) fn arm_locked<'a, L: Family<P>>(
        &'a self,
        (mut cpu, mut state, mut life): Locked<'a, P>,
        timer: TimerRef<P, L>,
        arming: Arming,
        now: Ns,
        mut moves_to: Option<CpuId>,
    ) -> (Guard<'a, P>, Rearm) {
        // What to do to the device after unlocking, and which pending expiry this arming replaces.
        let (mut after_unlock, mut replaced) = (Rearm::Keep, None);
        if life.is_pending() {
            let locality = if cpu == self.here() { Locality::Local } else { Locality::Remote };
            if moves_to.is_some() || state.device.policy() == Policy::Eager {
                // The removal programs the device separately.
                after_unlock = self.take_out(cpu, &mut state, timer, life, locality);
                life = life.idle();
            } else {
                let was_due = L::expiry(&state.queues, timer.node());
                replaced = Some((state.for_device::<L>(life, was_due), locality));
            }
        }
        // This loop ends, because at least one base is online.
        while let Some(target) = moves_to {
            life = life.migrating_to(target);
            // Release: the node's fields, written under the old lock, are read under the new one.
            timer.set_life(life);
            self.finish(state, after_unlock);
            after_unlock = Rearm::Keep;
            cpu = target;
            state = self.base_for::<L>(cpu).state.lock();
            moves_to = (!state.is_online).then(|| self.after(cpu));
            state.counts.migrated += u64::from(state.is_online);
        }
        self.forward::<L>(&mut state, now);
        let armed = L::enqueue(&mut state.queues, timer, life, arming);
        match self.update_device(&mut state, timer, armed, replaced) {
            Rearm::Keep => (state, after_unlock),
            kick => (state, kick),
        }
    }

    /// The window and those options that the timer's family (coarse or precise) uses.
    #[inline(always)]
    fn arming<L: Family<P>>(&self, window: Window, options: Options) -> Arming {
        let fires_in = if self.defers { options.fires_in } else { FiresIn::Handler };
        Arming { window: L::window(window), wakes: options.wakes, fires_in }
    }

    /// Brings the wheel's clock up to date before a coarse timer is armed. If the caller passes a
    /// time in the future, the current time is used (W1).
    #[inline(always)]
    fn forward<L: Family<P>>(&self, state: &mut BaseState, now: Ns) {
        if L::COARSE && state.queues.wheel.moves_clock(now) {
            state.queues.wheel.forward(now.min(self.platform().now()));
        }
    }

    /// Updates the event device after a timer has been armed. If the timer was pending before,
    /// `old` is when a device would have had to fire for its previous arming, and whether that
    /// device belongs to the caller's CPU.
    #[inline(never)]
    fn update_device<L: Family<P>>(
        &self,
        state: &mut BaseState,
        timer: TimerRef<P, L>,
        armed: Life,
        old: Option<(Ns, Locality)>,
    ) -> Rearm {
        // A timer on a list is pending, so its word names the base.
        let Some(cpu) = armed.base() else { return Rearm::Keep };
        let due = L::expiry(&state.queues, timer.node());
        let new = self.expect::<L>(cpu, state, armed, due);
        let BaseState { queues, device, deferred, .. } = state;
        // Read the time under the lock. Callers that have waited for the lock have older times;
        // with these, each caller would program the device for a slightly earlier time than the
        // caller before it (R8).
        let now = || self.platform().now();
        let rearm = match old {
            None => device.started(new, now),
            Some((old, locality)) => {
                let earliest = || deferred.earliest(queues);
                device.restarted(armed.urgency(), old, new, locality, earliest, now)
            }
        };
        self.carry_out(cpu, rearm)
    }
}
