//! Timers on clocks that can be set, or that advance during a suspend: realtime and boottime.
//!
//! A deadline on another clock is converted to the timers' clock, by the current difference between
//! the two. When the core fires the timer, the timer's own clock is read, so that the callback does
//! not run early. After a step of the clock or a suspend, every deadline is converted again; see
//! [`watch`](crate::platform::watch).
//!
//! Lock order: the list of all clock timers, the deadline of one timer, a base. None of these locks
//! is held while a callback or a drop runs the user's code.

mod firing;
mod watching;

pub use firing::ClockFired;

use crate::events;
use crate::platform::clock::HostClock;
use crate::platform::locked::locked;
use crate::platform::time_base::TimeBase;
use crate::timer::cancel_error::CancelError;
use crate::timer::clock_timers::OnStep;
use crate::timer::owned::Owned;
use crate::timer::shared::Handle;
use crate::timers::Timers;
use firing::{Armed, Arming, ClockTimerState};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::time::{Instant, Ns, Window};

/// A timer with its deadlines on a chosen clock; from [`Timers::clock_timer`].
///
/// It never fires early on its own clock. When the wall clock is set, absolute deadlines on
/// [`TimeBase::Realtime`] keep their wall-clock time: the timer fires at once if that has passed,
/// and later if the clock went back. Relative deadlines do not move, as in POSIX: ten seconds are
/// ten seconds. On [`TimeBase::Boottime`] both kinds count suspended time; relative deadlines on
/// realtime do not.
///
/// Arming costs as much as for an [`HrTimer`](crate::HrTimer), plus a lock of its own and two clock
/// readings; firing costs one more reading. The first such timer of a set starts a thread that
/// waits for clocks to be set, unless an event loop drives the set.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::clock::TimeBase;
///
/// let time = VirtualTime::new();
/// let alarm = time.timers().clock_timer(TimeBase::Realtime, |_| println!("wake up"));
/// alarm.start_at(time.now_on(TimeBase::Realtime) + Duration::from_secs(3600))?;
/// // The clock is set forwards past the deadline: the timer fires at once.
/// time.set_realtime(time.now_on(TimeBase::Realtime) + Duration::from_secs(7200));
/// assert!(!alarm.is_pending());
/// # Ok::<(), tickless::callback::StartError>(())
/// ```
#[must_use = "dropping a timer cancels it"]
pub struct ClockTimer {
    /// The timer's key in the list of clock timers of its set, which is walked when a clock is set.
    id: u64,
    inner: Arc<Inner>,
}

struct Inner {
    timer: Owned<QueueLink>,
    state: Arc<ClockTimerState>,
}

impl fmt::Debug for ClockTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClockTimer { inner, .. } = self;
        f.debug_struct("ClockTimer").field("base", &inner.state.base).finish_non_exhaustive()
    }
}

impl Timers {
    /// Creates a timer with its deadlines on this clock, not armed. Allocates about four times.
    pub fn clock_timer<F>(&self, base: TimeBase, callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        ClockTimer::new(&self.shared, base, callback)
    }

    /// Returns the current time on a clock; realtime counts from 1970.
    pub fn now_on(&self, base: TimeBase) -> Instant {
        self.shared.now_on(base).into()
    }

    /// Returns how many times it was detected that a clock had been set, or the system suspended,
    /// since the first [`clock_timer`](Timers::clock_timer) was created.
    pub fn clock_steps(&self) -> u64 {
        self.shared.clock_timers.watch.steps()
    }

    /// If the kernel cannot report that a clock was set, returns an error that names the system
    /// call that it refused. In this case, clock timers check their clock once a second. Timers in
    /// an event loop always do that, and return `None` here.
    pub fn clock_watch_fallback(&self) -> Option<io::Error> {
        self.shared.clock_timers.watch.refused().map(io::Error::from)
    }
}

impl ClockTimer {
    fn new<F>(shared: &Handle, base: TimeBase, mut callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        let watch = Arc::clone(&shared.clock_timers.watch);
        let state = Arc::new(ClockTimerState { base, arming: Mutex::default(), watch });
        let own = Arc::clone(&state);
        let timer = Owned::new(shared.handle(), move |fired| own.fire(fired, &mut callback));
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

    /// Labels the timer; see [`HrTimer::labelled`](crate::HrTimer::labelled).
    pub fn labelled(self, label: &'static str) -> ClockTimer {
        self.inner.timer.set_label(label);
        self
    }

    /// Arms or rearms the timer for a point in time on its clock; if that has passed, it fires at
    /// once.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms or rearms the timer to fire at any time within a window on its clock.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_range(&self, soft: Instant, hard: Instant) -> Result<Started, StartError> {
        let window = Window::new(soft.to_ns(), hard.to_ns());
        self.start_armed(|_, _| Some(Armed::Own(window)))
    }

    /// Arms or rearms the timer to fire when `after` has passed: suspended time counts on boottime,
    /// but not on realtime and monotonic time.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_from(self.inner.timer.now().into(), after)
    }

    /// Like [`start`](Self::start), but counted from `now`, a time on the timers' clock, as
    /// [`Timers::now`] returns it.
    ///
    /// # Errors
    ///
    /// Fails as [`start`](Self::start) does.
    pub fn start_from(&self, now: Instant, after: Duration) -> Result<Started, StartError> {
        let at = now.to_ns() + after;
        self.start_armed(|clock, _| Some(Armed::relative(clock, self.inner.state.base, at)))
    }

    /// Arms the timer as [`start`](Self::start) does, if it is idle. If it is pending, its deadline
    /// can move earlier, never later.
    ///
    /// # Errors
    ///
    /// Fails as [`start`](Self::start) does.
    pub fn reduce(&self, after: Duration) -> Result<Started, StartError> {
        self.start_armed(|clock, armed| {
            let state = &self.inner.state;
            let is_earlier = Ns::from_duration(after) < state.left(armed, clock);
            let at = clock.now() + after;
            let is_idle = armed == Armed::Idle;
            (is_earlier || is_idle).then(|| Armed::relative(clock, state.base, at))
        })
    }

    /// Cancels the timer without waiting for its callback: see
    /// [`HrTimer::cancel`](crate::HrTimer::cancel).
    pub fn cancel(&self) -> Cancel {
        self.cancel_if(|_| true)
    }

    /// Cancels the timer, unless its callback is running. In that case the call changes nothing and
    /// returns [`Cancel::Running`].
    pub fn try_cancel(&self) -> Cancel {
        self.cancel_if(|arming| !arming.runs)
    }

    /// Cancels the timer and waits until its callback is not running.
    ///
    /// # Errors
    ///
    /// Fails as [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync) does.
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.cancel_and(|| self.inner.timer.cancel_sync())
    }

    /// Cancels a timer that is never armed while its callback runs, and waits: see
    /// [`HrTimer::cancel_single_shot`](crate::HrTimer::cancel_single_shot).
    ///
    /// # Errors
    ///
    /// Fails as [`HrTimer::cancel_single_shot`](crate::HrTimer::cancel_single_shot) does.
    pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        self.cancel_and(|| self.inner.timer.cancel_single_shot())
    }

    /// Cancels the timer for good and waits: every later arming fails with [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// Fails as [`HrTimer::shutdown_sync`](crate::HrTimer::shutdown_sync) does.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.cancel_and(|| self.inner.timer.shutdown_sync())
    }

    /// Returns `true` if the timer is armed. The answer can be out of date at once.
    pub fn is_pending(&self) -> bool {
        self.read(|arming| arming.armed != Armed::Idle).unwrap_or(false)
    }

    /// Returns `true` if the timer is armed or its callback is running.
    pub fn is_active(&self) -> bool {
        self.read(|arming| arming.armed != Armed::Idle || arming.runs).unwrap_or(false)
    }

    /// Returns the deadline that the timer is armed for, if that is on the timer's own clock.
    pub fn deadline(&self) -> Option<Instant> {
        match self.read(|arming| arming.armed)? {
            Armed::Own(window) => Some(window.soft.into()),
            Armed::Idle | Armed::Timers(_) => None,
        }
    }

    pub(crate) fn is_forked_child(&self) -> bool {
        self.inner.timer.shared().is_forked_child()
    }

    /// Returns the current time on the timer's own clock.
    pub(crate) fn now(&self) -> Instant {
        self.inner.timer.shared().now_on(self.inner.state.base).into()
    }

    /// Passes the locked state to `read`; `None` in a forked child, which must not wait for locks.
    fn read<R>(&self, read: impl FnOnce(&Arming) -> R) -> Option<R> {
        let is_forked_child = self.inner.timer.shared().is_forked_child();
        (!is_forked_child).then(|| read(&locked(&self.inner.state.arming)))
    }

    /// Calls `armed` with what the timer is armed for now, and arms the timer for what `armed`
    /// returns. If that is `None`, the timer is left as it is.
    fn start_armed(
        &self,
        armed: impl FnOnce(&HostClock, Armed) -> Option<Armed>,
    ) -> Result<Started, StartError> {
        let shared = self.inner.timer.shared();
        if shared.is_forked_child() {
            return Err(StartError::Shut);
        }
        events::after(|| {
            // Hold the lock until the core has armed the timer: a concurrent conversion after a
            // step of the clock must not see the new deadline without the arming.
            let mut arming = locked(&self.inner.state.arming);
            let Some(armed) = armed(&shared.bases.platform().clock, arming.armed) else {
                return Ok(Started::Kept);
            };
            if arming.cancels > 0 {
                return Ok(Started::Cancelled);
            }
            // The core's own result tells nothing of this: it runs the timer for a conversion, too.
            let was_armed = std::mem::replace(&mut arming.armed, armed) != Armed::Idle;
            match self.inner.start(armed) {
                Ok(Started::Idle | Started::Pending) if was_armed => Ok(Started::Pending),
                Ok(Started::Idle | Started::Pending) => Ok(Started::Idle),
                failed => {
                    arming.armed = Armed::Idle;
                    failed
                }
            }
        })
    }

    /// Cancels the timer if `may` allows it in its current state. Does not wait.
    fn cancel_if(&self, may: impl FnOnce(&Arming) -> bool) -> Cancel {
        if self.inner.timer.shared().is_forked_child() {
            return Cancel::Idle;
        }
        events::after(|| {
            // Hold the lock across both changes: a concurrent start, or a conversion after a step
            // of the clock, must not see one without the other.
            let mut arming = locked(&self.inner.state.arming);
            if !may(&arming) {
                return Cancel::Running;
            }
            let found = arming.cancel();
            self.inner.timer.cancel();
            found
        })
    }

    /// Cancels the timer, and calls `wait`, which waits for the callback. Armings fail until then.
    fn cancel_and(
        &self,
        wait: impl FnOnce() -> Result<Cancel, CancelError>,
    ) -> Result<Cancel, CancelError> {
        struct Cancelling<'a>(&'a ClockTimer);
        impl Drop for Cancelling<'_> {
            fn drop(&mut self) {
                if !self.0.inner.timer.shared().is_forked_child() {
                    locked(&self.0.inner.state.arming).cancels -= 1;
                }
            }
        }
        if self.inner.timer.shared().is_forked_child() {
            return wait();
        }
        let found = {
            let mut arming = locked(&self.inner.state.arming);
            arming.cancels += 1;
            arming.cancel()
        };
        let _cancelling = Cancelling(self);
        wait().map(|_| found)
    }
}

impl Drop for ClockTimer {
    fn drop(&mut self) {
        let shared = self.inner.timer.shared();
        if !shared.is_forked_child() {
            // Drop the list's reference here, after its lock was released.
            drop(shared.clock_timers.remove(self.id));
        }
    }
}

impl Inner {
    /// Arms the timer in the core. The caller holds the lock of `state.arming`.
    fn start(&self, armed: Armed) -> Result<Started, StartError> {
        let shared = self.timer.shared();
        let now = shared.now();
        let window = self.state.on_timers_clock(armed, &shared.bases.platform().clock);
        self.timer.start(window, now)
    }
}

impl OnStep for Inner {
    /// Rearms the timer after a clock was set, if its deadline is on its own clock.
    fn convert_deadline(&self) {
        let arming = locked(&self.state.arming);
        if let Armed::Own(_) = arming.armed {
            // An error means that the timer was shut down concurrently.
            let _ = self.start(arming.armed);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for a thread")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::device::refused::RefusedCall;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    const HOUR_NS: i128 = 3_600_000_000_000;

    fn wait_for(count: &AtomicU64, target: u64) {
        let begun = Instant::now();
        while count.load(Ordering::SeqCst) < target {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not fire");
            std::thread::yield_now();
        }
    }

    /// Goal: with driver threads, setting the clock forwards past the deadline fires the timer, and
    /// after setting it backwards the timer waits (H5: deadlines follow their clock). If the kernel
    /// does not report that the clock was set, the timer checks its clock periodically.
    #[test]
    #[cfg_attr(miri, ignore = "there is no timerfd under Miri")]
    fn steps_are_reported_or_polled() {
        for is_reported in [true, false] {
            let timers = Timers::builder().bases(1).start().expect("one driver can be started");
            if !is_reported {
                let why = RefusedCall { call: "a test", errno: 0 };
                timers.shared.clock_timers.watch.source(|| Err(why));
                assert!(timers.clock_watch_fallback().unwrap().to_string().contains("a test"));
            }
            let fired = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&fired);
            let timer = timers.clock_timer(TimeBase::Realtime, move |_| {
                count.fetch_add(1, Ordering::SeqCst);
            });
            let due = timers.now_on(TimeBase::Realtime) + Duration::from_millis(200);
            timer.start_at(due).expect("not shut down");
            let steps = timers.shared.bases.platform().clock.steps();
            let report = || {
                if is_reported {
                    timers.shared.clocks_stepped()
                }
            };
            // Set the clock back by an hour before the timer fires. The timer must not be early
            // even if that has not been reported yet.
            steps.step(TimeBase::Realtime, -HOUR_NS);
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(fired.load(Ordering::SeqCst), 0, "early");
            report();
            assert!(timer.is_pending());
            steps.step(TimeBase::Realtime, 2 * HOUR_NS);
            report();
            wait_for(&fired, 1);
            assert!(timers.now_on(TimeBase::Realtime) >= due);
            assert_eq!(timers.clock_steps(), if is_reported { 2 } else { 0 });
        }
    }

    /// Goal: an hour of suspend, in which the counter goes on, counts on boottime only, also if the
    /// wall clock is set in the same moment (H5).
    #[test]
    #[cfg(linux_platform)]
    #[cfg_attr(miri, ignore = "there is no timerfd under Miri")]
    fn a_suspend_counts_on_boottime_only() {
        let timers = Timers::builder().bases(1).start().expect("one driver can be started");
        let fired = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let bases = [TimeBase::Boottime, TimeBase::Monotonic, TimeBase::Realtime];
        let all: Vec<_> = (bases.into_iter().zip(&fired))
            .map(|(base, count)| {
                let count = Arc::clone(count);
                timers.clock_timer(base, move |_| _ = count.fetch_add(1, Ordering::SeqCst))
            })
            .collect();
        let hour = Duration::from_nanos(HOUR_NS as u64);
        let ahead = |base| timers.now_on(base) + hour / 2;
        for (base, timer) in bases.into_iter().zip(&all) {
            timer.start_at(ahead(base)).expect("not shut down");
        }
        std::thread::sleep(Duration::from_millis(50));
        let clock = &timers.shared.bases.platform().clock;
        clock.suspend();
        clock.steps().step(TimeBase::Boottime, HOUR_NS);
        clock.steps().step(TimeBase::Realtime, HOUR_NS - 2 * HOUR_NS);
        timers.shared.clocks_stepped();
        wait_for(&fired[0], 1);
        let (begun, new) = (Instant::now(), timers.hrtimer(|_| {}));
        new.start(Duration::from_millis(50)).expect("not shut down");
        while new.is_pending() {
            assert!(begun.elapsed() < Duration::from_secs(10), "a new timer is late");
        }
        let counts = fired.each_ref().map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 0, 0], "{bases:?}");
        clock.steps().step(TimeBase::Realtime, 2 * HOUR_NS);
        timers.shared.clocks_stepped();
        wait_for(&fired[2], 1);
        assert_eq!(fired[1].load(Ordering::SeqCst), 0);
    }
}
