//! Adds a refill timer and a queue of wakers to a bandwidth group of the core, whose members
//! (threads or tasks) share a quota of permits or CPU time per period.
//!
//! - Lock order: the group's state first, then the locks that its timers take, or the table of
//!   phases.
//! - The permit word is an atomic with the permits that can be taken without the lock. A thread
//!   that locks the state closes the word before it reads the group, so that no permits are taken
//!   in the meantime, and reopens it if the refill timer runs. Otherwise the word stays closed, and
//!   the next caller takes the lock and starts the timer.
//! - Wakers are called, cloned and dropped only after the state has been unlocked.
//! - The timer runs only while a refill would change something. Every thread that locks the state
//!   first applies the refills that are due, so neither a stopped timer nor a long callback delays
//!   the group.
//! - The timers hold a weak reference to the group. Dropping its last handle stops the timers, and
//!   waits for a refill that is running, except inside a callback.

use super::plan::{Plan, crowd_slack};
use crate::events;
use crate::hrtimer::HrTimer;
use crate::periodic::Periodic;
use crate::platform::fork::OfProcess;
use crate::platform::locked::locked;
use crate::timer::fired::Fired;
use crate::timers::Timers;
#[cfg(feature = "tokio-time")]
use crate::tokio_runtime::any_moves;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;
use tickless_core::bandwidth::{BandwidthError, Counts, Group, MemberId, Permits, Take};
use tickless_core::phase::{PhaseError, PhaseSlot};
use tickless_core::platform::OwnLine;
use tickless_core::time::{Ns, Window};

/// A bandwidth group with its refill and release timers, and the members that wait for its quota.
pub(super) struct Controller {
    timers: Timers,
    slot: Option<PhaseSlot>,
    /// How late a refill is allowed to be; if `None`, [`crowd_slack`] decides.
    slack: Option<Duration>,
    refill: Periodic,
    /// Releases the next batch of waiting members. After a refill not all of them are released at
    /// once, which would be a thundering herd.
    release: HrTimer,
    most: u64,
    pub(super) waiting_max: usize,
    permits: OwnLine<Permits<AtomicU64>>,
    state: OfProcess<Mutex<Members>>,
}

/// How many permits a group starts with, and when it is first refilled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin {
    /// The group starts with the quota of one period. Its first refill comes at its phase.
    Full,
    /// The group starts with this many permits, and is next refilled at this time.
    With(u64, Ns),
}

pub(super) struct Members {
    pub(super) group: Group,
    /// The wakers of the members that wait; a released member has no entry.
    pub(super) waiting: HashMap<MemberId, Wake>,
    is_active: bool,
    /// Whether [`Controller::close`] was called: the group grants no more permits.
    pub(super) is_closed: bool,
}

pub(super) enum Wake {
    #[cfg_attr(not(linux_platform), expect(dead_code, reason = "throttles wait so, on Linux"))]
    Thread(Thread),
    /// A task that requested this many permits. The permits are taken when the task is released,
    /// not when it runs, so the tasks behind it need not wait until it has run.
    Task(Waker, u64),
}

impl Wake {
    fn wake(self) {
        match self {
            Wake::Thread(thread) => thread.unpark(),
            Wake::Task(waker, _) => waker.wake(),
        }
    }
}

/// The effects of a change, which the caller performs after it has unlocked the state.
#[must_use = "a released member that is not woken waits forever"]
pub(super) struct Effects {
    woken: Vec<Wake>,
    release_at: Option<Ns>,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("slack", &self.slack).finish_non_exhaustive()
    }
}

impl Controller {
    /// Makes the controller of a group, and chooses the phase of its refills.
    pub(super) fn start(
        timers: &Timers,
        plan: Plan,
        begin: Begin,
    ) -> Result<Arc<Controller>, BandwidthError> {
        plan.settings.check()?;
        if timers.shared.is_forked_child() {
            return Err(BandwidthError::NoTimers);
        }
        let now = timers.shared.now();
        // The check above accepts no period that the table of phases refuses, so the only error
        // here is a fixed phase that is not shorter than the period.
        let slot = timers.shared.phases().take(plan.settings.period, plan.phase);
        let slot = slot.map_err(|error| match error {
            PhaseError::BeyondPeriod { phase, period } => {
                BandwidthError::PhaseBeyondPeriod { phase, period }
            }
            _ => BandwidthError::PeriodTooLong(plan.settings.period.to_duration()),
        })?;
        let group = match begin {
            Begin::Full => Group::new(plan.settings, slot.first_after(now))?,
            Begin::With(permits, until) => Group::with_pool(plan.settings, permits, until)?,
        };
        Ok(Arc::new_cyclic(|this: &Weak<Controller>| {
            let (of_refill, of_release) = (this.clone(), this.clone());
            Controller {
                timers: timers.clone(),
                slot: Some(slot),
                slack: plan.slack,
                refill: timers.periodic(move |period| {
                    if let Some(this) = of_refill.upgrade() {
                        this.refill(period);
                    }
                }),
                release: timers.hrtimer(move |_| {
                    if let Some(this) = of_release.upgrade() {
                        this.poke();
                    }
                }),
                most: plan.settings.most(),
                waiting_max: plan.waiting_max,
                permits: OwnLine(Permits::closed()),
                state: OfProcess::new(Mutex::new(Members {
                    group,
                    waiting: HashMap::new(),
                    is_active: false,
                    is_closed: false,
                })),
            }
        }))
    }

    /// Takes permits without the lock, if enough are available. In a forked child this returns
    /// [`Take::AskGroup`]: the caller then calls [`enter`](Controller::enter), which fails.
    pub(super) fn take(&self, permits: u64) -> Take {
        match self.is_forked_child() {
            false => self.permits.0.take(permits, self.timers.shared.now()),
            true => Take::AskGroup,
        }
    }

    /// Like [`take`](Controller::take), but inlined: returns [`Take::AskGroup`] if the clock cannot
    /// be read without a function call.
    #[inline]
    pub(super) fn try_take(&self, permits: u64) -> Take {
        // The caller's clock must be checked, which only the caller of `take` does.
        #[cfg(feature = "tokio-time")]
        if any_moves() {
            return Take::AskGroup;
        }
        if self.is_forked_child() {
            return Take::AskGroup;
        }
        match self.timers.shared.bases.platform().clock.try_now() {
            Some(now) => self.permits.0.take(permits, now),
            None => Take::AskGroup,
        }
    }

    /// Locks the state and applies the refills that are due. The caller must pass the guard to
    /// [`finish`](Controller::finish). `None` in a forked child.
    pub(super) fn enter(&self) -> Option<(MutexGuard<'_, Members>, Ns)> {
        if self.is_forked_child() {
            return None;
        }
        let mut state = self.lock();
        let now = self.timers.shared.now();
        state.group.refill(now);
        Some((state, now))
    }

    /// Releases the members that can continue, starts the refill timer if it is needed, unlocks the
    /// state, and wakes the released members.
    pub(super) fn finish(&self, mut state: MutexGuard<'_, Members>, now: Ns) {
        let effects = events::after(|| {
            let effects = state.release(now);
            if !state.is_active && !state.group.is_idle() {
                let period = state.group.settings().period.to_duration();
                let next = state.group.next_refill();
                // Starting the timer fails only in a forked child. That is not reported here,
                // because the caller's next call on the group returns an error.
                state.is_active =
                    self.refill.start_with_slack(next.into(), period, self.slack()).is_ok();
            }
            self.open(&mut state);
            drop(state);
            effects
        });
        self.perform(effects);
    }

    /// Passes the locked group to `read` and returns the result; `None` in a forked child.
    pub(super) fn read<R>(&self, read: impl FnOnce(&Group) -> R) -> Option<R> {
        (!self.is_forked_child()).then(|| {
            let mut state = self.lock();
            let result = read(&state.group);
            self.open(&mut state);
            result
        })
    }

    pub(super) fn counts(&self) -> Counts {
        self.read(Group::counts).unwrap_or_default()
    }

    #[inline]
    pub(super) fn is_forked_child(&self) -> bool {
        self.timers.shared.is_forked_child()
    }

    pub(super) fn phase_offset(&self) -> Option<Duration> {
        self.slot.as_ref().map(|slot| slot.phase().to_duration())
    }

    /// Applies due refills and releases members, without waiting for the refill timer.
    pub(super) fn poke(&self) {
        if let Some((state, now)) = self.enter() {
            self.finish(state, now);
        }
    }

    /// Stops granting permits and wakes the queued tasks, which then find the group closed.
    pub(super) fn close(&self) {
        let Some((mut state, now)) = self.enter() else { return };
        let woken = state.close();
        self.finish(state, now);
        woken.into_iter().for_each(|waker| self.wake(|| waker.wake()));
    }

    /// The refill timer's callback. Stops the timer while the group needs no refill.
    fn refill(&self, period: &mut Fired<'_>) {
        if period.clock().runtime().is_some_and(|runtime| runtime.has_ended()) {
            // The end of the runtime fires all its timers. No permits come any more.
            let woken = self.lock().close();
            return woken.into_iter().for_each(|waker| self.wake(|| waker.wake()));
        }
        let mut state = self.lock();
        let now = period.now().to_ns();
        state.group.refill(now);
        if state.group.is_idle() {
            state.is_active = false;
            period.stop();
        } else {
            // Ask the group for the time of its next refill, which can be several periods after
            // the timer's deadline if this refill is late.
            let next = state.group.next_refill();
            period.restart_window(Window::new(next, next + self.slack()));
        }
        self.finish(state, now);
    }

    /// How long a member waits for the refill timer before it calls [`poke`](Controller::poke).
    pub(super) fn patience(&self) -> Duration {
        let now = self.timers.shared.now();
        let patience =
            |group: &Group| group.next_refill().since(now).after(group.settings().period);
        self.read(patience).unwrap_or(Ns::ZERO).to_duration()
    }

    #[inline]
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Returns the available permits and the time of the next refill; `None` if a member waits or
    /// the group is closed.
    pub(super) fn remains(&self) -> Option<(u64, Ns)> {
        if self.is_forked_child() {
            return None;
        }
        let mut state = self.lock();
        let group = &state.group;
        let remains = (group.waiting() == 0 && !state.is_closed)
            .then(|| (group.pool().max(0) as u64, group.next_refill()));
        self.open(&mut state);
        remains
    }

    /// Returns how late a refill is allowed to be: what the program has set, or else a time that
    /// grows with the number of timers of this period.
    fn slack(&self) -> Duration {
        let by_crowd = || {
            let period = self.slot.as_ref().map_or(Ns::ZERO, PhaseSlot::period);
            let view = self.timers.shared.phases().view(period);
            crowd_slack(period, view.map_or(0, |view| view.timers))
        };
        self.slack.unwrap_or_else(by_crowd)
    }

    /// Wakes the released waiters, and arms the timer that releases the next batch.
    fn perform(&self, effects: Effects) {
        for wake in effects.woken {
            self.wake(|| wake.wake());
        }
        if let Some(at) = effects.release_at {
            // An error means that the timer was shut down. If the timer was already armed, it was
            // for the same batch, so no batch is lost.
            let _ = self.release.start_at(at.into());
        }
    }

    /// Calls a waker and catches its panics, so that the other members are woken, too.
    fn wake(&self, wake: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(wake)) {
            self.timers.shared.callback_panicked(panic);
        }
    }

    /// Lets callers take permits without the lock again, if the refill timer runs.
    fn open(&self, state: &mut Members) {
        if state.is_active && !state.is_closed {
            state.group.open(&self.permits.0);
        }
    }

    /// Locks the group. Closes the permits that callers can take without the lock.
    fn lock(&self) -> MutexGuard<'_, Members> {
        let mut state = locked(&self.state);
        state.group.close(&self.permits.0);
        state
    }
}

impl Members {
    /// Stops granting permits. Returns the wakers of the queued tasks.
    fn close(&mut self) -> Vec<Waker> {
        self.is_closed = true;
        // Move each task's waker out, and leave a no-op waker in its place, by which the task sees
        // that it was not released. Cloning the waker would run the runtime's code under the lock.
        let mut woken = Vec::new();
        for (&id, wake) in &mut self.waiting {
            if let Wake::Task(waker, _) = wake {
                woken.push(std::mem::replace(waker, Waker::noop().clone()));
                self.group.leave(id);
            }
        }
        woken
    }

    /// Removes the wakers of the released members. Charges each released task its permits.
    fn release(&mut self, now: Ns) -> Effects {
        let mut woken = Vec::new();
        while let Some(id) = self.group.pop_released(now) {
            let Some(wake) = self.waiting.remove(&id) else { continue };
            if let Wake::Task(_, permits) = wake {
                self.group.charge(id, permits);
            }
            woken.push(wake);
        }
        Effects { woken, release_at: self.group.next_release() }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if self.is_forked_child() {
            return;
        }
        if let Some(slot) = self.slot.take() {
            self.timers.shared.phases().leave(slot);
        }
    }
}
