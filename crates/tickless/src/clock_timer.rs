//! Timers on clocks that are set or go on over a suspend: realtime and boottime (H5).
//!
//! The core keeps one clock. A deadline on another clock is converted by what both show at the
//! moment. Firing checks the deadline's own clock, so the timer is not early whatever happened to
//! that clock meanwhile. When the clock was set, or the system was suspended, every deadline is
//! converted again ([`watch`](crate::platform::watch) says how that is noticed), so it is not
//! late either.
//!
//! # Locks
//!
//! The list of these timers, then one timer's deadline, then a base. Callbacks and drops run
//! without any of them.

mod firing;
mod watching;

pub use firing::ClockFired;

use crate::platform::clock::HostClock;
use crate::platform::device::fallback::RefusedCall;
use crate::platform::time_base::TimeBase;
use crate::timer::cancel_error::CancelError;
use crate::timer::clock_timers::OnStep;
use crate::timer::owned::Owned;
use crate::timer::shared::Handle;
use crate::timers::Timers;
use firing::{Armed, State, locked};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Options, StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::time::{Instant, Window};

/// A timer with its deadlines on a clock of your choice; from [`Timers::clock_timer`].
///
/// It never fires early on its own clock. When the time of day is set:
/// - absolute deadlines on [`TimeBase::Realtime`] stay the same on that clock: they fire at once if
///   they have passed, and later if the clock went back;
/// - relative ones do not change, as in POSIX: ten seconds are ten seconds.
///
/// On [`TimeBase::Boottime`] both kinds count suspended time; relative ones on realtime do not.
///
/// Arming costs as much as for an [`HrTimer`](crate::HrTimer), plus a lock of its own and two clock
/// readings; firing costs one more reading. Whenever a clock is set, all clock timers are rearmed.
/// The first one of a set of timers starts a thread that waits for clocks to be set, unless an
/// event loop drives the set.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::clock::TimeBase;
///
/// let time = VirtualTime::new();
/// let alarm = time.timers().clock_timer(TimeBase::Realtime, |_| println!("wake up"));
/// alarm.start_at(time.now_on(TimeBase::Realtime) + Duration::from_secs(3600))?;
/// // Somebody sets the clock forward: it fires at once.
/// time.set_realtime(time.now_on(TimeBase::Realtime) + Duration::from_secs(7200));
/// assert!(!alarm.is_pending());
/// # Ok::<(), tickless::callback::StartError>(())
/// ```
#[must_use = "dropping a timer cancels it"]
pub struct ClockTimer {
    /// Its number in the list of its set.
    id: u64,
    inner: Arc<Inner>,
}

/// A timer, and what it is armed for.
struct Inner {
    timer: Owned<QueueLink>,
    state: Arc<State>,
}

impl fmt::Debug for ClockTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClockTimer { inner, .. } = self;
        f.debug_struct("ClockTimer").field("base", &inner.state.base).finish_non_exhaustive()
    }
}

impl Timers {
    /// Creates a timer with its deadlines on this clock, not armed. Allocates about four times.
    ///
    /// The callback runs on a driver thread.
    pub fn clock_timer<F>(&self, base: TimeBase, callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        ClockTimer::new(&self.shared, base, callback)
    }

    /// The current time on a clock; realtime counts from 1970.
    pub fn now_on(&self, base: TimeBase) -> Instant {
        self.shared.now_on(base).into()
    }

    /// How often these timers noticed that a clock was set or that the system was suspended. They
    /// do not check before the first [`clock_timer`](Timers::clock_timer) is made.
    pub fn clock_steps(&self) -> u64 {
        self.shared.clock_timers.watch.steps()
    }

    /// The refused system call that keeps the kernel from reporting to these timers when a clock is
    /// set. They then check once a second, and after a clock is set are late by at most that.
    /// Timers in an event loop always check once a second, and return `None` here.
    pub fn clock_watch_fallback(&self) -> Option<RefusedCall> {
        self.shared.clock_timers.watch.refused()
    }
}

impl ClockTimer {
    fn new<F>(shared: &Handle, base: TimeBase, mut callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        let watch = Arc::clone(&shared.clock_timers.watch);
        let state = Arc::new(State { base, armed: Mutex::new(Armed::Idle), watch });
        let own = Arc::clone(&state);
        let timer = Owned::new(shared.clone(), move |fired| own.fire(fired, &mut callback));
        let inner = Arc::new(Inner { timer, state });
        if shared.is_forked_child() {
            return ClockTimer { id: 0, inner };
        }
        if base != TimeBase::Monotonic {
            shared.watch_clocks();
        }
        let listed: Arc<dyn OnStep> = Arc::<Inner>::clone(&inner);
        ClockTimer { id: shared.clock_timers.add(listed), inner }
    }

    /// Arms or rearms the timer for a point in time on its clock; if that has passed, it fires at
    /// once. [`realtime`](crate::clock::realtime) converts from the standard library's
    /// `SystemTime`.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms or rearms the timer to fire anywhere in a window of its clock: see
    /// [`HrTimer::start_range`](crate::HrTimer::start_range).
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_range(&self, soft: Instant, hard: Instant) -> Result<Started, StartError> {
        self.start_armed(|_| Armed::Own(Window::new(soft.into(), hard.into())))
    }

    /// Arms or rearms the timer to fire when `after` has passed: suspended time counts on boottime,
    /// but not on realtime and monotonic time.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_armed(|clock| Armed::relative(clock, self.inner.state.base, after))
    }

    /// Cancels the timer without waiting for its callback: see
    /// [`HrTimer::cancel`](crate::HrTimer::cancel).
    pub fn cancel(&self) -> Cancel {
        self.disarm(|| self.inner.timer.cancel())
    }

    /// Cancels the timer and waits until its callback is not running: see
    /// [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync).
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.disarm(|| self.inner.timer.cancel_sync())
    }

    /// Cancels the timer for good and waits like [`cancel_sync`](Self::cancel_sync): every later
    /// arming fails with [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is shut down all the same.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.disarm(|| self.inner.timer.shutdown_sync())
    }

    /// Returns `true` if the timer is armed. The answer may be out of date at once.
    pub fn is_pending(&self) -> bool {
        let is_forked_child = self.inner.timer.shared().is_forked_child();
        !is_forked_child
            && !matches!(*locked(&self.inner.state.armed), Armed::Idle)
            && self.inner.timer.is_pending()
    }

    /// The deadline that the timer is armed for, if it is one on its own clock.
    pub fn deadline(&self) -> Option<Instant> {
        if self.inner.timer.shared().is_forked_child() {
            return None;
        }
        match *locked(&self.inner.state.armed) {
            Armed::Own(window) => Some(window.soft.into()),
            Armed::Idle | Armed::Timers(_) => None,
        }
    }

    fn start_armed(&self, armed: impl FnOnce(&HostClock) -> Armed) -> Result<Started, StartError> {
        let shared = self.inner.timer.shared();
        if shared.is_forked_child() {
            return Err(StartError::Shut);
        }
        // Held until the core knows, so that a step finds both or neither.
        let mut state = locked(&self.inner.state.armed);
        *state = armed(&shared.bases.platform().clock);
        let started = self.inner.start(*state);
        if !matches!(started, Ok(Started::Idle | Started::Pending)) {
            *state = Armed::Idle;
        }
        started
    }

    fn disarm<R>(&self, cancel: impl FnOnce() -> R) -> R {
        let is_forked_child = self.inner.timer.shared().is_forked_child();
        if !is_forked_child {
            *locked(&self.inner.state.armed) = Armed::Idle;
        }
        let found = cancel();
        if !is_forked_child {
            // What its callback asked for meanwhile was refused.
            let mut state = locked(&self.inner.state.armed);
            if !self.inner.timer.is_active() {
                *state = Armed::Idle;
            }
        }
        found
    }
}

impl Drop for ClockTimer {
    fn drop(&mut self) {
        let shared = self.inner.timer.shared();
        if !shared.is_forked_child() {
            // Ours is the last then, and it goes without the list's lock.
            drop(shared.clock_timers.remove(self.id));
        }
    }
}

impl Inner {
    /// Tells the core. With the lock of what it is armed for.
    fn start(&self, armed: Armed) -> Result<Started, StartError> {
        let shared = self.timer.shared();
        let now = shared.now();
        let window = self.state.on_timers_clock(armed, &shared.bases.platform().clock);
        self.timer.start(window, now, Options::default())
    }
}

impl OnStep for Inner {
    /// Rearms it, if it is armed for a time on a clock that can be set.
    fn convert_deadline(&self) {
        let state = locked(&self.state.armed);
        // Not active, and not idle: its callback asked for this and was refused.
        if matches!(*state, Armed::Own(_)) && self.timer.is_active() {
            // Who has shut it down meanwhile wants nothing of it.
            let _ = self.start(*state);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for a thread")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    const HOUR_NS: i64 = 3_600_000_000_000;

    fn wait_for(count: &AtomicU64, target: u64) {
        let begun = Instant::now();
        while count.load(Ordering::SeqCst) < target {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not fire");
            std::thread::yield_now();
        }
    }

    /// Goal: H5 with drivers: a step that is reported fires at once what has come due, and what the
    /// clock went back for waits; where no step is reported, the timer finds out by itself.
    #[test]
    #[cfg_attr(miri, ignore = "there is no timerfd under Miri")]
    fn steps_are_heard_of_or_found_out() {
        for is_told in [true, false] {
            let timers = Timers::builder().bases(1).start().expect("one driver can be started");
            if !is_told {
                let why = RefusedCall::with_code("a test", 0);
                timers.shared.clock_timers.watch.notice(|| Err(why));
                assert_eq!(timers.clock_watch_fallback(), Some(why));
            }
            let fired = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&fired);
            let timer = timers.clock_timer(TimeBase::Realtime, move |_| {
                count.fetch_add(1, Ordering::SeqCst);
            });
            let due = timers.now_on(TimeBase::Realtime) + Duration::from_millis(200);
            timer.start_at(due).expect("not shut down");
            let steps = timers.shared.bases.platform().clock.steps();
            let tell = || {
                if is_told {
                    timers.shared.clocks_stepped()
                }
            };
            // Back by an hour, before it fires; nobody need tell for it not to be early.
            steps.step(TimeBase::Realtime, -HOUR_NS);
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(fired.load(Ordering::SeqCst), 0, "early");
            tell();
            assert!(timer.is_pending());
            steps.step(TimeBase::Realtime, 2 * HOUR_NS);
            tell();
            wait_for(&fired, 1);
            assert!(timers.now_on(TimeBase::Realtime) >= due);
            assert_eq!(timers.clock_steps(), if is_told { 2 } else { 0 });
        }
    }
}
