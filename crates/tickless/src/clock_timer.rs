//! Timers on clocks that are set or go on over a suspend: realtime and boottime (H5).
//!
//! The core keeps one clock. A deadline on another one is put where it belongs on ours by what
//! both show at the moment; whoever fires looks at the deadline's own clock, so it is not early
//! whatever happened to that meanwhile. When the clock was set, or the system was suspended,
//! every deadline is put anew ([`watch`](tickless_platform::watch) says who tells), so it is not
//! late either.
//!
//! # Locks
//!
//! The list of these timers, then one timer's deadline, then a base. Callbacks and drops run
//! without any of them.

use crate::timer::cancel_error::CancelError;
use crate::timer::clock_timers::OnStep;
use crate::timer::fired::Fired;
use crate::timer::owned::Owned;
use crate::timer::shared::Handle;
use crate::timers::Timers;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Options, StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::periodic;
use tickless_core::time::{Instant, Ns, Window};
use tickless_platform::clock::HostClock;
use tickless_platform::device::fallback::RefusedCall;
use tickless_platform::time_base::TimeBase;
use tickless_platform::watch::{ClockWatch, LOOK, Notice};
#[cfg(linux_platform)]
use tickless_platform::watcher::Watcher;
#[cfg(linux_platform)]
use tickless_platform::worker::Worker;

/// A timer whose deadlines are on a clock of the program's choice; from
/// [`Timers::clock_timer`].
///
/// Never early on its own clock. When the time of day is set:
/// - absolute deadlines on [`TimeBase::Realtime`] stay what they are on that clock: they fire at
///   once if they have passed, and are put off if it went back;
/// - relative ones are left alone, as POSIX has it: ten seconds are ten seconds.
///
/// On [`TimeBase::Boottime`] both kinds count the time of a suspend; relative ones on realtime do
/// not.
///
/// Arming costs what it does for an [`HrTimer`](crate::HrTimer), a lock of its own and two clock
/// readings; firing costs one more reading. Whenever a clock is set, all of them are armed anew.
/// The first one of a set starts a thread that waits for that, unless an event loop drives the set.
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

/// A [`ClockTimer`] that fires, as its callback sees it.
#[derive(Debug)]
pub struct ClockFired<'a> {
    clock: &'a HostClock,
    base: TimeBase,
    window: Window,
    /// Is the window one on the timers' clock?
    is_relative: bool,
    restart: Option<Armed>,
}

/// A timer, and what it is armed for.
struct Inner {
    timer: Owned<QueueLink>,
    state: Arc<State>,
}

/// What a timer is armed for, for its handle and its callback.
#[derive(Debug)]
struct State {
    base: TimeBase,
    armed: Mutex<Armed>,
    /// How timers of its set learn of steps.
    watch: Arc<ClockWatch>,
}

/// What a timer is armed for.
#[derive(Clone, Copy, Debug)]
enum Armed {
    /// Nothing: if the core thinks otherwise, that was cancelled.
    Idle,
    /// A window on its own clock.
    Own(Window),
    /// One on the timers' clock, which no step moves.
    Timers(Window),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ClockTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClockTimer { inner, .. } = self;
        f.debug_struct("ClockTimer").field("base", &inner.state.base).finish_non_exhaustive()
    }
}

impl Timers {
    /// A timer whose deadlines are on this clock, not armed. Allocates about four times.
    ///
    /// The callback runs on a driver thread.
    pub fn clock_timer<F>(&self, base: TimeBase, callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        ClockTimer::new(&self.shared, base, callback)
    }

    /// The time on a clock; realtime counts from 1970.
    pub fn now_on(&self, base: TimeBase) -> Instant {
        self.shared.now_on(base).into()
    }

    /// How often these timers noticed that a clock was set or that the system was suspended. They
    /// do not look before the first [`clock_timer`](Timers::clock_timer) is made.
    pub fn clock_steps(&self) -> u64 {
        self.shared.clock_timers.watch.steps()
    }

    /// Which refused system call keeps the kernel from telling these timers when a clock is set.
    /// They then look once a second, and are late by at most that when it was set. Timers in an
    /// event loop always look once a second, and have `None` here.
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

    /// Arms it, or arms it anew, for a point in time on its clock. One that has passed fires at
    /// once. For realtime from the standard library's see [`realtime`](crate::clock::realtime).
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms it, or arms it anew, to fire anywhere in a window of its clock: see
    /// [`HrTimer::start_range`](crate::HrTimer::start_range).
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start_range(&self, soft: Instant, hard: Instant) -> Result<Started, StartError> {
        self.start_armed(|_| Armed::Own(Window::new(soft.into(), hard.into())))
    }

    /// Arms it, or arms it anew, to fire `after` the present: on realtime and monotonic time
    /// without the time of suspends, on boottime with it.
    ///
    /// # Errors
    ///
    /// [`StartError::Shut`] if the timer was shut down.
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_armed(|clock| Armed::relative(clock, self.inner.state.base, after))
    }

    /// Cancels it without waiting for its callback: see
    /// [`HrTimer::cancel`](crate::HrTimer::cancel).
    pub fn cancel(&self) -> Cancel {
        self.disarm(|| self.inner.timer.cancel())
    }

    /// Cancels it and waits until its callback runs nowhere: see
    /// [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync).
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.disarm(|| self.inner.timer.cancel_sync())
    }

    /// The same for good: every later arming is [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is shut down all the same.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.disarm(|| self.inner.timer.shutdown_sync())
    }

    /// Is it armed? May be out of date as soon as it is known.
    pub fn is_pending(&self) -> bool {
        let is_forked_child = self.inner.timer.shared().is_forked_child();
        !is_forked_child
            && !matches!(*locked(&self.inner.state.armed), Armed::Idle)
            && self.inner.timer.is_pending()
    }

    /// What it is armed for on its own clock, if for a point of that.
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
    /// Puts it where it belongs now, if it is armed for a point on a clock that may be set.
    fn put_anew(&self) {
        let state = locked(&self.state.armed);
        // Not active, and not idle: its callback asked for this and was refused.
        if matches!(*state, Armed::Own(_)) && self.timer.is_active() {
            // Who has shut it down meanwhile wants nothing of it.
            let _ = self.start(*state);
        }
    }
}

impl Armed {
    fn relative(clock: &HostClock, base: TimeBase, after: Duration) -> Armed {
        let window = |now: Ns| Window::new(now + after, now + after);
        match base {
            #[cfg(linux_platform)]
            TimeBase::Boottime => Armed::Own(window(clock.now_on(base))),
            _ => Armed::Timers(window(clock.now())),
        }
    }
}

impl State {
    /// Where on the timers' clock that is, as far as one can tell now.
    fn on_timers_clock(&self, armed: Armed, clock: &HostClock) -> Window {
        let own = match armed {
            Armed::Idle => return Window::new(Ns::NEVER, Ns::NEVER),
            Armed::Timers(window) => return window,
            Armed::Own(window) => window,
        };
        // Ours first: if the thread loses its CPU in between, the timer looks too early rather
        // than too late.
        let (now, own_now) = (clock.now(), clock.now_on(self.base));
        let farthest = match self.base != TimeBase::Monotonic && self.watch.is_blind() {
            true => now.after(LOOK),
            false => Ns::NEVER,
        };
        let place = |at: Ns| match at {
            Ns::NEVER => Ns::NEVER,
            at => now.after(at.since(own_now)).min(farthest),
        };
        Window::new(place(own.soft), place(own.hard))
    }

    /// What the timer's callback is to the core.
    fn fire(&self, fired: &mut Fired<'_>, callback: &mut impl FnMut(&mut ClockFired<'_>)) {
        let clock = fired.clock();
        let mut armed = locked(&self.armed);
        let window = match *armed {
            // Cancelled, when the core had begun to fire it.
            Armed::Idle => return,
            // Armed for this anew since, and that will come.
            Armed::Timers(window) if fired.found_at() < window.soft.into() => return,
            Armed::Timers(window) => window,
            Armed::Own(window) if clock.now_on(self.base) < window.soft => {
                // Its clock went back, or is a moment behind. Whoever arms it anew stands (R9).
                let again = self.on_timers_clock(*armed, clock);
                fired.restart_window(again);
                return;
            }
            Armed::Own(window) => window,
        };
        let is_relative = matches!(*armed, Armed::Timers(_));
        *armed = Armed::Idle;
        drop(armed);
        let mut told = ClockFired { clock, base: self.base, window, is_relative, restart: None };
        callback(&mut told);
        let Some(restart) = told.restart else { return };
        let mut armed = locked(&self.armed);
        // Somebody who has armed it meanwhile stands.
        if matches!(*armed, Armed::Idle) {
            *armed = restart;
            let again = self.on_timers_clock(restart, clock);
            fired.restart_window(again);
        }
    }
}

impl ClockFired<'_> {
    /// The deadline it was armed with: on its own clock, but on the timers' clock if it was armed
    /// by [`start`](ClockTimer::start) on realtime.
    pub fn deadline(&self) -> Instant {
        self.window.soft.into()
    }

    /// The end of the window it was armed with, on the same clock as [`deadline`](Self::deadline).
    pub fn hard_deadline(&self) -> Instant {
        self.window.hard.into()
    }

    /// What its own clock shows. Reads it.
    pub fn now(&self) -> Instant {
        self.clock.now_on(self.base).into()
    }

    /// Has it armed again for a point in time on its own clock.
    pub fn restart_at(&mut self, deadline: Instant) {
        let deadline = Ns::from(deadline);
        self.restart = Some(Armed::Own(Window::new(deadline, deadline)));
    }

    /// Has it armed again, to fire `after` the present, as [`start`](ClockTimer::start) does.
    pub fn restart(&mut self, after: Duration) {
        self.restart = Some(Armed::relative(self.clock, self.base, after));
    }

    /// Has it armed again whole periods of its own clock after its own deadline: the first such
    /// moment that has not passed. Returns by how many periods that is: 1 if the callback kept up
    /// and nobody set the clock. A period of zero counts as a nanosecond.
    ///
    /// When the clock goes back nothing fires until it has come up to the next moment. One on
    /// realtime that was armed by [`start`](ClockTimer::start) goes on like that: whatever the time
    /// of day is set to, the period is what it is.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let period = Ns::from_duration(period);
        let (now, armed): (Ns, fn(Window) -> Armed) = match self.is_relative {
            true => (self.clock.now(), Armed::Timers),
            false => (self.now().into(), Armed::Own),
        };
        let (window, periods) = periodic::forward(self.window, now, period);
        self.restart = Some(armed(window));
        periods
    }

    /// Takes back what was asked for: the timer stays idle.
    pub fn stop(&mut self) {
        self.restart = None;
    }
}

impl Handle {
    /// Sees to it that somebody tells of steps, or that timers look for themselves.
    fn watch_clocks(&self) {
        self.clock_timers.watch.notice(|| {
            if self.is_virtual() {
                return Ok(Notice::Hand);
            }
            match self.has_drivers() {
                true => self.start_watching(),
                false => Ok(Notice::Nobody),
            }
        });
    }

    /// No system but Linux tells.
    #[cfg(not(linux_platform))]
    fn start_watching(&self) -> Result<Notice, RefusedCall> {
        Ok(Notice::Nobody)
    }

    /// Starts a thread that waits for steps.
    #[cfg(linux_platform)]
    fn start_watching(&self) -> Result<Notice, RefusedCall> {
        let watcher = Arc::new(Watcher::new()?);
        let (shared, watched) = (self.for_driver(), Arc::clone(&watcher));
        let watch = move || {
            if let Err(why) = watched.watch(|| shared.clocks_stepped()) {
                // From now on they look for themselves: the first time now.
                shared.clock_timers.watch.end(why);
                shared.clocks_stepped();
            }
        };
        let thread = Worker::spawn(self.thread_name("tickless-c", None), watch);
        let thread = thread.map_err(|error| {
            RefusedCall::with_code("clone", error.raw_os_error().unwrap_or_default())
        })?;
        self.clock_timers.watched_by(watcher);
        self.add_driver(thread);
        Ok(Notice::Kernel)
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

    /// Goal: H5 with drivers: a step that somebody tells of fires what has come due at once, and
    /// what the clock went back for waits; where nobody tells, the timer finds out by itself.
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
