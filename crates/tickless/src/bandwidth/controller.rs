//! A core group with its refill timer, and the waiters that it wakes.
//!
//! # Ground rules
//!
//! - Lock order: a group's state, then what its timer locks, or the phases in use. Timers'
//!   callbacks run without any lock, so a refill takes the state's lock like any caller.
//! - Beside the state is a word with the permits that can be taken without the lock. The lock's
//!   holder closes it before it looks at the group, and opens it again while the timer runs; at
//!   rest it stays closed, so that the first caller that takes permits starts the timer.
//! - No waiter is woken and no waker is cloned or dropped under the state's lock.
//! - The timer runs only while a refill would change something. A caller that takes from a group at
//!   rest brings it up to date by arithmetic, and starts the timer again where its deadlines would
//!   have been: the phase is chosen once, when the group is made (P2).
//! - Any holder of the state's lock refills what is due, so a driver that is delayed by a long
//!   callback does not delay the group.
//! - The timers know the group only by a weak reference. Its last user takes it down, and waits for
//!   a refill that is under way, except inside a callback.

use super::plan::{BandwidthError, Plan, crowd_slack};
use crate::hrtimer::HrTimer;
use crate::periodic::{PeriodFired, Periodic};
use crate::timers::Timers;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;
use tickless_core::bandwidth::{Counts, Group, MemberId, Permits, Take};
use tickless_core::bases::StartError;
use tickless_core::phase::PhaseSlot;
use tickless_core::time::{Ns, Window};

/// A group on the host.
pub(super) struct Controller {
    timers: Timers,
    slot: Option<PhaseSlot>,
    /// `None`: depends on how many groups share the period.
    slack: Option<Duration>,
    refill: Periodic,
    /// For members that a refill has quota for and that are released later, to avoid a thundering
    /// herd.
    release: HrTimer,
    /// The most that can be asked for at once.
    most: u64,
    permits: OwnLine<Permits<AtomicU64>>,
    state: Mutex<State>,
}

/// Apart from what is only read, for CPUs that fetch lines in pairs as well.
#[repr(align(128))]
struct OwnLine<T>(T);

/// Where a group begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin {
    /// With the quota of one period.
    Anew,
    /// With this many permits, and its next refill at this time.
    With(u64, Ns),
}

/// What a group's lock guards.
pub(super) struct State {
    pub(super) group: Group,
    /// The queue. A member that is not in it any more has been released.
    pub(super) waiting: HashMap<MemberId, Wake>,
    /// Does the refill timer run?
    is_active: bool,
    /// No permits are given out any more: [`Controller::close`].
    pub(super) is_closed: bool,
}

/// How a waiter is woken.
pub(super) enum Wake {
    #[cfg_attr(not(linux_platform), expect(dead_code, reason = "throttles wait so, on Linux"))]
    Thread(Thread),
    /// A task that gets this many permits. They count as used when it is released, so that a task
    /// that is slow to run does not keep others from theirs.
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

/// What is to be done once the lock is free.
#[must_use = "who is not woken waits for ever"]
pub(super) struct Left {
    woken: Vec<Wake>,
    /// When the next batch goes.
    release_at: Option<Ns>,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("slack", &self.slack).finish_non_exhaustive()
    }
}

impl Controller {
    pub(super) fn start(
        timers: &Timers,
        plan: Plan,
        begin: Begin,
    ) -> Result<Arc<Controller>, BandwidthError> {
        plan.settings.check()?;
        if timers.shared.is_forked_child() {
            return Err(StartError::Shut.into());
        }
        let now = timers.shared.now();
        let slot = timers.shared.phases().take(plan.settings.period, plan.phase)?;
        let group = match begin {
            Begin::Anew => Group::new(plan.settings, slot.first_after(now))?,
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
                permits: OwnLine(Permits::closed()),
                state: Mutex::new(State {
                    group,
                    waiting: HashMap::new(),
                    is_active: false,
                    is_closed: false,
                }),
            }
        }))
    }

    /// Takes permits without the lock, if they are there. [`Take::AskGroup`] in a forked child.
    pub(super) fn take(&self, permits: u64) -> Take {
        match self.is_forked_child() {
            false => self.permits.0.take(permits, self.timers.shared.now()),
            true => Take::AskGroup,
        }
    }

    /// The same in as few instructions as can be: gives up where it would have to make a call.
    #[inline]
    pub(super) fn try_take(&self, permits: u64) -> Take {
        if !self.is_forked_child()
            && let Some(now) = self.timers.shared.try_now()
        {
            return self.permits.0.take(permits, now);
        }
        Take::AskGroup
    }

    /// The state, up to date; an error in a forked child. Ends in [`finish`](Controller::finish).
    pub(super) fn enter(&self) -> Result<(MutexGuard<'_, State>, Ns), StartError> {
        if self.is_forked_child() {
            return Err(StartError::Shut);
        }
        let mut state = self.lock();
        let now = self.timers.shared.now();
        state.group.refill(now);
        Ok((state, now))
    }

    /// Releases the members that may go on, makes sure that the next refill comes, gives the lock
    /// back, and wakes those released.
    pub(super) fn finish(&self, mut state: MutexGuard<'_, State>, now: Ns) {
        let left = state.let_go(now);
        if !state.is_active && !state.group.is_idle() {
            let period = state.group.period().to_duration();
            let next = state.group.next_refill();
            // Refused only in a child that a fork left behind, where the next call says so.
            state.is_active = self.refill.start_range(next.into(), period, self.slack()).is_ok();
        }
        self.open(&mut state);
        drop(state);
        self.carry_out(left);
    }

    /// A look at the group; `None` in a forked child.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Group) -> R) -> Option<R> {
        (!self.is_forked_child()).then(|| {
            let mut state = self.lock();
            let looked = look(&state.group);
            self.open(&mut state);
            looked
        })
    }

    pub(super) fn counts(&self) -> Counts {
        self.look(Group::counts).unwrap_or_default()
    }

    #[inline]
    pub(super) fn is_forked_child(&self) -> bool {
        self.timers.shared.is_forked_child()
    }

    /// How far behind the multiples of its period it is refilled.
    pub(super) fn phase_offset(&self) -> Option<Duration> {
        self.slot.as_ref().map(|slot| slot.phase().to_duration())
    }

    /// Releases the members that may go on, whether or not a timer has come. For a release by
    /// hand, and for a member that has waited longer than it should.
    pub(super) fn poke(&self) {
        if let Ok((state, now)) = self.enter() {
            self.finish(state, now);
        }
    }

    /// Gives out no more permits, and wakes those in line to see it. Does nothing in a forked
    /// child.
    pub(super) fn close(&self) {
        let Ok((mut state, now)) = self.enter() else { return };
        state.is_closed = true;
        // They stay in line until they look, with a waker that does nothing: no waker is cloned
        // under the lock.
        let spent = |wake: &mut Wake| match wake {
            Wake::Task(waker, _) => Some(std::mem::replace(waker, Waker::noop().clone())),
            Wake::Thread(_) => None,
        };
        let woken: Vec<Waker> = state.waiting.values_mut().filter_map(spent).collect();
        self.finish(state, now);
        for waker in woken {
            self.wake(|| waker.wake());
        }
    }

    fn refill(&self, period: &mut PeriodFired<'_, '_>) {
        let mut state = self.lock();
        let now = Ns::from(period.now());
        state.group.refill(now);
        if state.group.is_idle() {
            state.is_active = false;
            period.stop();
        } else {
            // The group's own deadline: the period may have been stretched.
            let next = state.group.next_refill();
            period.restart_window(Window::new(next, next + self.slack()));
        }
        self.finish(state, now);
    }

    /// How long a member waits for a refill's wakeup before it looks after the group itself: a
    /// callback may delay the drivers.
    pub(super) fn patience(&self) -> Duration {
        let now = self.timers.shared.now();
        let patience = |group: &Group| group.next_refill().since(now).after(group.period());
        self.look(patience).unwrap_or(Ns::ZERO).to_duration()
    }

    #[inline]
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Permits and next refill, if nothing waits and the group is not closed: its whole state, but
    /// for the counts.
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

    /// How late a refill may be.
    fn slack(&self) -> Duration {
        let by_crowd = || {
            let period = self.slot.as_ref().map_or(Ns::ZERO, PhaseSlot::period);
            let view = self.timers.shared.phases().view(period);
            crowd_slack(period, view.map_or(0, |view| view.timers))
        };
        self.slack.unwrap_or_else(by_crowd)
    }

    fn carry_out(&self, left: Left) {
        for wake in left.woken {
            self.wake(|| wake.wake());
        }
        if let Some(at) = left.release_at {
            // Refused only after a shut-down, which ends everything by another way; an earlier
            // arming that this overwrites was for the same batch.
            let _ = self.release.start_at(at.into());
        }
    }

    /// A waker is the runtime's code. One that panics must not keep the others waiting, nor end the
    /// refills.
    fn wake(&self, wake: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(wake)) {
            self.timers.shared.callback_panicked(panic);
        }
    }

    /// Lets permits be taken without the lock again, if the timer runs.
    fn open(&self, state: &mut State) {
        if state.is_active && !state.is_closed {
            state.group.open(&self.permits.0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.group.close(&self.permits.0);
        state
    }
}

impl State {
    fn let_go(&mut self, now: Ns) -> Left {
        let mut woken = Vec::new();
        while let Some(id) = self.group.pop_released(now) {
            let Some(wake) = self.waiting.remove(&id) else { continue };
            if let Wake::Task(_, permits) = wake {
                self.group.charge(id, permits);
            }
            woken.push(wake);
        }
        Left { woken, release_at: self.group.next_release() }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take()
            && !self.is_forked_child()
        {
            self.timers.shared.phases().leave(slot);
        }
    }
}
