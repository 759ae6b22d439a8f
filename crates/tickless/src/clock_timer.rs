//! Timers on clocks that are set or go on over a suspend: realtime and boottime (H5).
//!
//! The core keeps one clock. A deadline on another one is put where it belongs on ours by what
//! both show at the moment; whoever fires looks at the deadline's own clock, so it is not early
//! whatever happened to that meanwhile. When the clock was set, or the system was suspended,
//! every deadline is put anew ([`host::watch`](crate::host::watch) says who tells), so it is not
//! late either.
//!
//! # Locks
//!
//! The list of these timers, then one timer's deadline, then a base. Callbacks and drops run
//! without any of them.

use crate::fired::Fired;
use crate::host::device::DeviceFallback;
use crate::host::owned::Owned;
use crate::host::time_base::TimeBase;
use crate::host::watch::{ClockWatch, LOOK, Notice, Watcher};
use crate::host::worker::Worker;
use crate::timers::{Handle, Shared};
use crate::{CancelError, Timers};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Options, StartError, Started};
use tickless_core::link::QueueLink;
use tickless_core::periodic;
use tickless_core::time::{Ns, Window};

/// A timer whose deadlines are on a clock of the program's choice; from
/// [`Timers::clock_timer`].
///
/// Never early on its own clock. When the time of day is set:
/// - absolute deadlines on [`TimeBase::Realtime`] stay what they are on that clock: they fire at
///   once if they have passed, and are put off if it went back;
/// - relative ones are left alone, as POSIX has it: ten seconds are ten seconds.
///
/// On [`TimeBase::Boottime`] both count the time of a suspend; relative ones on realtime do not.
///
/// It costs what an [`HrTimer`](crate::HrTimer) does, a lock of its own and two clock readings to
/// arm, and one more to fire. For each time that a clock is set all of them are armed anew. The
/// first one of a set starts a thread that waits for that, unless an event loop drives the set.
pub struct ClockTimer {
    /// Its number in the list of its set.
    id: u64,
    inner: Arc<Inner>,
}

/// What a callback of a [`ClockTimer`] is told, and what it may ask for.
#[derive(Debug)]
pub struct ClockFired<'a> {
    shared: &'a Shared,
    base: TimeBase,
    window: Window,
    restart: Option<Armed>,
}

/// A timer, and what it is armed for.
pub(crate) struct Inner {
    timer: Owned<QueueLink>,
    state: Arc<State>,
}

/// What a timer is armed for, for its handle and its callback.
#[derive(Debug)]
struct State {
    base: TimeBase,
    armed: Mutex<Armed>,
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

/// All timers of a set that are on clocks of their own, and who tells of steps.
#[derive(Default)]
pub(crate) struct ClockTimers {
    list: Mutex<List>,
    pub(crate) watch: ClockWatch,
    /// Ends the watching thread, if there is one.
    watcher: Mutex<Option<Arc<Watcher>>>,
}

#[derive(Default)]
struct List {
    next_id: u64,
    timers: BTreeMap<u64, Arc<Inner>>,
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
    /// A timer whose deadlines are on this clock, not armed. Allocates some four times.
    ///
    /// The callback runs on a driver thread.
    pub fn clock_timer<F>(&self, base: TimeBase, callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        ClockTimer::new(&self.shared, base, callback)
    }

    /// What a clock shows. In nanoseconds: realtime since 1970.
    pub fn now_on(&self, base: TimeBase) -> Ns {
        self.shared.now_on(base)
    }

    /// How often the timers of this set were told that a clock had been set, or that the system
    /// had been suspended. Nobody tells them before the first
    /// [`clock_timer`](Timers::clock_timer).
    pub fn clock_steps(&self) -> u64 {
        self.shared.clock_timers.watch.steps()
    }

    /// Why nobody tells them, if somebody was to: the system refuses a call. They look at their
    /// clock once a second then, and are late by as much at most when it was set. So it is,
    /// without this, in an event loop.
    pub fn clock_watch_fallback(&self) -> Option<DeviceFallback> {
        self.shared.clock_timers.watch.refused()
    }
}

impl ClockTimer {
    fn new<F>(shared: &Handle, base: TimeBase, mut callback: F) -> ClockTimer
    where
        F: FnMut(&mut ClockFired<'_>) + Send + 'static,
    {
        let state = Arc::new(State { base, armed: Mutex::new(Armed::Idle) });
        let own = Arc::clone(&state);
        let timer = Owned::new(shared.clone(), move |fired| own.fire(fired, &mut callback));
        let inner = Arc::new(Inner { timer, state });
        if shared.is_forked_child() {
            return ClockTimer { id: 0, inner };
        }
        if base != TimeBase::Monotonic {
            shared.watch_clocks();
        }
        let mut list = locked(&shared.clock_timers.list);
        list.next_id += 1;
        let id = list.next_id;
        list.timers.insert(id, Arc::clone(&inner));
        ClockTimer { id, inner }
    }

    /// Arms it, or arms it anew, for a point in time on its clock. One that has passed fires at
    /// once. For realtime from the standard library's see [`realtime`](crate::clock::realtime).
    pub fn start_at(&self, deadline: Ns) -> Result<Started, StartError> {
        self.start_range(deadline, deadline)
    }

    /// Arms it, or arms it anew, to fire anywhere in a window of its clock: see
    /// [`HrTimer::start_range`](crate::HrTimer::start_range).
    pub fn start_range(&self, soft: Ns, hard: Ns) -> Result<Started, StartError> {
        self.start_armed(|_| Armed::Own(Window::new(soft, hard)))
    }

    /// Arms it, or arms it anew, to fire `after` the present: on realtime and monotonic time
    /// without the time of suspends, on boottime with it.
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        self.start_armed(|shared| Armed::relative(shared, self.inner.state.base, after))
    }

    /// Cancels it without waiting for its callback: see
    /// [`HrTimer::cancel`](crate::HrTimer::cancel).
    pub fn cancel(&self) -> Cancel {
        self.disarm(|| self.inner.timer.cancel())
    }

    /// Cancels it and waits until its callback runs nowhere: see
    /// [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync).
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.disarm(|| self.inner.timer.cancel_sync())
    }

    /// The same for good: every later arming is [`StartError::Shut`].
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
    pub fn deadline(&self) -> Option<Ns> {
        if self.inner.timer.shared().is_forked_child() {
            return None;
        }
        match *locked(&self.inner.state.armed) {
            Armed::Own(window) => Some(window.soft),
            Armed::Idle | Armed::Timers(_) => None,
        }
    }

    fn start_armed(&self, armed: impl FnOnce(&Shared) -> Armed) -> Result<Started, StartError> {
        let shared = self.inner.timer.shared();
        if shared.is_forked_child() {
            return Err(StartError::Shut);
        }
        // Held until the core knows, so that a step finds both or neither.
        let mut state = locked(&self.inner.state.armed);
        *state = armed(shared);
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
            // Ours is the last then, and it goes without the lock.
            let listed = locked(&shared.clock_timers.list).timers.remove(&self.id);
            drop(listed);
        }
    }
}

impl Inner {
    /// Tells the core. With the lock of what it is armed for.
    fn start(&self, armed: Armed) -> Result<Started, StartError> {
        let shared = self.timer.shared();
        let now = shared.now();
        let window = armed.on_timers_clock(shared, self.state.base);
        self.timer.start(window, now, Options::default())
    }

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
    fn relative(shared: &Shared, base: TimeBase, after: Duration) -> Armed {
        let window = |now: Ns| Window::new(now + after, now + after);
        match base {
            TimeBase::Boottime => Armed::Own(window(shared.now_on(base))),
            TimeBase::Monotonic | TimeBase::Realtime => Armed::Timers(window(shared.now())),
        }
    }

    /// Where on the timers' clock that is, as far as one can tell now.
    fn on_timers_clock(self, shared: &Shared, base: TimeBase) -> Window {
        let own = match self {
            Armed::Idle => return Window::new(Ns::NEVER, Ns::NEVER),
            Armed::Timers(window) => return window,
            Armed::Own(window) => window,
        };
        // Ours first: if the thread loses its CPU in between, the timer looks too early rather
        // than too late.
        let (now, own_now) = (shared.now(), shared.now_on(base));
        let farthest = match base != TimeBase::Monotonic && shared.clock_timers.watch.is_blind() {
            true => now.after(LOOK),
            false => Ns::NEVER,
        };
        let place = |at: Ns| match at {
            Ns::NEVER => Ns::NEVER,
            at => now.after(at.since(own_now)).min(farthest),
        };
        Window::new(place(own.soft), place(own.hard))
    }
}

impl State {
    /// What the timer's callback is to the core.
    fn fire(&self, fired: &mut Fired<'_>, callback: &mut impl FnMut(&mut ClockFired<'_>)) {
        let shared = fired.shared();
        let mut armed = locked(&self.armed);
        let window = match *armed {
            // Cancelled, when the core had begun to fire it.
            Armed::Idle => return,
            // Armed for this anew since, and that will come.
            Armed::Timers(window) if fired.found_at() < window.soft => return,
            Armed::Timers(window) => window,
            Armed::Own(window) if shared.now_on(self.base) < window.soft => {
                // Its clock went back, or is a moment behind. Whoever arms it anew stands (R9).
                let again = armed.on_timers_clock(shared, self.base);
                fired.restart_range(again.soft, again.hard);
                return;
            }
            Armed::Own(window) => window,
        };
        *armed = Armed::Idle;
        drop(armed);
        let mut told = ClockFired { shared, base: self.base, window, restart: None };
        callback(&mut told);
        let Some(restart) = told.restart else { return };
        let mut armed = locked(&self.armed);
        // Somebody who has armed it meanwhile stands.
        if matches!(*armed, Armed::Idle) {
            *armed = restart;
            let again = restart.on_timers_clock(shared, self.base);
            fired.restart_range(again.soft, again.hard);
        }
    }
}

impl ClockFired<'_> {
    /// The deadline it was armed with: on its own clock, but on the timers' clock if it was armed
    /// by [`start`](ClockTimer::start) on realtime.
    pub fn deadline(&self) -> Ns {
        self.window.soft
    }

    /// The window it was armed with, likewise.
    pub fn window(&self) -> Window {
        self.window
    }

    /// What its own clock shows. Reads it.
    pub fn now(&self) -> Ns {
        self.shared.now_on(self.base)
    }

    /// Has it armed again for a point in time on its own clock.
    pub fn restart_at(&mut self, deadline: Ns) {
        self.restart = Some(Armed::Own(Window::new(deadline, deadline)));
    }

    /// Has it armed again, to fire `after` the present, as [`start`](ClockTimer::start) does.
    pub fn restart(&mut self, after: Duration) {
        self.restart = Some(Armed::relative(self.shared, self.base, after));
    }

    /// Has it armed again whole periods of its own clock after its own deadline: the first such
    /// moment that has not passed. Returns by how many periods that is: 1 if the callback kept up
    /// and nobody set the clock. A period of zero counts as a nanosecond.
    ///
    /// When the clock goes back nothing fires until it has come up to the next moment.
    pub fn forward(&mut self, period: Duration) -> u64 {
        let period = Ns::from_duration(period);
        let (window, periods) = periodic::forward(self.window, self.now(), period);
        self.restart = Some(Armed::Own(window));
        periods
    }

    /// Takes back what was asked for: the timer stays idle.
    pub fn stop(&mut self) {
        self.restart = None;
    }
}

impl Shared {
    /// What a clock shows.
    pub(crate) fn now_on(&self, base: TimeBase) -> Ns {
        let host = self.bases.platform();
        host.clock.steps().read(base, &host.clock)
    }

    /// A clock was set, or the system was suspended: puts every deadline where it belongs now.
    pub(crate) fn clocks_stepped(&self) {
        self.clock_timers.watch.count_step();
        for timer in locked(&self.clock_timers.list).timers.values() {
            timer.put_anew();
        }
    }

    /// Ends the thread that waits for steps, if there is one.
    pub(crate) fn end_watching(&self) {
        if let Some(watcher) = locked(&self.clock_timers.watcher).take() {
            watcher.end();
        }
    }
}

impl Handle {
    /// Sees to it that somebody tells of steps, or that timers look for themselves.
    fn watch_clocks(&self) {
        self.clock_timers.watch.notice(|| {
            if self.is_virtual() {
                return Ok(Notice::Hand);
            }
            if !self.has_drivers() {
                return Ok(Notice::Nobody);
            }
            let watcher = Arc::new(Watcher::new()?);
            let (shared, watched) = (self.for_driver(), Arc::clone(&watcher));
            let watch = move || {
                if let Err(why) = watched.watch(|| shared.clocks_stepped()) {
                    // From now on they look for themselves: the first time now.
                    shared.clock_timers.watch.end(why);
                    shared.clocks_stepped();
                }
            };
            let thread = Worker::spawn("tickless-clock".into(), watch);
            let thread = thread.map_err(|error| DeviceFallback {
                call: "clone",
                errno: error.raw_os_error().unwrap_or_default(),
            })?;
            *locked(&self.clock_timers.watcher) = Some(watcher);
            self.add_driver(thread);
            Ok(Notice::Kernel)
        });
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
                let why = DeviceFallback { call: "a test", errno: 0 };
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
