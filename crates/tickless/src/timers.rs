//! All timers of a program: one base per CPU, and who drives them.

use crate::builder::Builder;
use crate::clock::Fallback;
use crate::clock_timer::ClockTimers;
use crate::fired::Fired;
use crate::host::arena::Arena;
use crate::host::device::{BaseDevice, Device, DeviceFallback};
use crate::host::expirer::Expirers;
use crate::host::fork::Process;
use crate::host::frame::{CallbackId, Nudge};
use crate::host::orphans::Orphans;
use crate::host::wakers::Wakers;
use crate::host::worker::Worker;
use crate::host::{Host, frame, owned};
use crate::stats::{Counters, Leaks, Notes, Stats, TimerList};
use crate::{ClockSource, HrTimer, Period, Periodic, StartTimersError, Timeout, events};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::Expired;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Bases, Deferral};
use tickless_core::phase::{CircleView, Phases};
use tickless_core::time::{CpuId, Ns, Tick};

/// All timers of a program, or as many separate sets as it likes. Cheap to clone.
///
/// The drivers stop when the last clone and the last timer are gone. Dropping that waits until they
/// have ended, and with them a callback that is still running, but not for a waker: a driver that
/// is waking tasks ends after that. Inside a callback or a waker nothing waits, and the drivers end
/// by themselves.
///
/// # Fork
///
/// Drivers stay with the process that started them. In a child all of its parent's timers count
/// as shut down: nothing fires, arming is an error, a cancel finds nothing, and dropping waits
/// for nothing and leaves the memory, and what the callback owns, to the end of the process. The
/// parent's go on undisturbed. A child may start timers of its own. A callback that forks must
/// not return in the child: exec, or exit.
#[derive(Clone, Debug)]
pub struct Timers {
    pub(crate) shared: Handle,
}

/// What drivers and timers have in common.
pub(crate) struct Shared {
    pub(crate) bases: Bases<Host>,
    pub(crate) panics: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) notes: Notes,
    pub(crate) orphans: Orphans,
    /// The memory of the timers.
    pub(crate) arena: Arena,
    /// How many [`Handle`]s there are.
    pub(crate) handles: AtomicUsize,
    /// How expiry threads are called, if there are any.
    pub(crate) expirers: Expirers,
    /// Do drivers wake on every tick?
    ticks: Option<Tick>,
    /// How often drivers look at their base whatever the device says.
    recheck: Ns,
    threads: Mutex<Vec<Worker>>,
    stop: AtomicBool,
    /// Who sits where among the periodic timers that have a phase. A lock for starting and
    /// stopping them; no expiry takes it.
    phases: Mutex<Phases>,
    /// The timers on clocks of their own.
    pub(crate) clock_timers: ClockTimers,
    /// Where its drivers run; `None` if it has none and can do without.
    process: Option<Process>,
    on_panic: Option<Arc<PanicReporter>>,
}

/// Is handed what a callback panicked with.
pub(crate) type PanicReporter = dyn Fn(&(dyn Any + Send)) + Send + Sync;

/// Keeps the drivers running; the last one to go stops them. Drivers themselves have none.
#[derive(Debug)]
pub(crate) struct Handle(Arc<Shared>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("bases", &self.bases).finish_non_exhaustive()
    }
}

impl Nudge for Shared {
    fn nudge(&self, cpu: CpuId) {
        self.bases.nudge(cpu);
    }
}

impl Timers {
    /// Starts timers with a base and a driver thread for each CPU that the process may use.
    ///
    /// Blocks for about a millisecond, to calibrate the clock.
    pub fn start() -> Result<Timers, StartTimersError> {
        Builder::new().start()
    }

    /// To start timers in another way.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn without_drivers(
        host: Host,
        settings: &Builder,
        process: Option<Process>,
    ) -> Timers {
        let count = host.cpus.bases();
        let shared = Arc::new(Shared {
            bases: Bases::new(host, count, settings.core),
            panics: AtomicU64::new(0),
            counters: Counters::new(count, settings.times_callbacks, settings.slow_after),
            notes: Notes::new(settings.notes_armings),
            orphans: Orphans::default(),
            arena: Arena::default(),
            handles: AtomicUsize::new(1),
            expirers: Expirers::new(count),
            ticks: settings.ticks.then_some(settings.core.tick),
            recheck: settings.recheck,
            threads: Mutex::default(),
            stop: AtomicBool::new(false),
            phases: Mutex::new(Phases::new()),
            clock_timers: ClockTimers::default(),
            process,
            on_panic: settings.on_panic.clone(),
        });
        Timers { shared: Handle(shared) }
    }

    /// A coarse timer, not armed. Allocates once: 64 bytes if the closure captures up to 16.
    ///
    /// The callback runs on a driver thread.
    pub fn timeout<F>(&self, callback: F) -> Timeout
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        Timeout::new(self, callback)
    }

    /// A high-resolution timer, not armed. Allocates once: 64 bytes if the closure captures up
    /// to 8.
    ///
    /// The callback runs on a driver thread.
    pub fn hrtimer<F>(&self, callback: F) -> HrTimer
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        HrTimer::new(self, callback)
    }

    /// A periodic high-resolution timer, not started. Allocates once or twice.
    pub fn periodic<F>(&self, callback: F) -> Periodic
    where
        F: FnMut(&mut Period<'_, '_>) + Send + 'static,
    {
        Periodic::new(self, callback)
    }

    /// The present, on the clock that deadlines are given in. About 11 ns with a trusted TSC.
    pub fn now(&self) -> Ns {
        self.shared.now()
    }

    /// Where [`now`](Timers::now) comes from.
    pub fn clock_source(&self) -> ClockSource {
        self.shared.bases.platform().clock.source()
    }

    /// Why that is not the CPU's counter, if nobody asked for another clock: there is none, it
    /// is not to be trusted, or it turned out to be unsteady while timers ran on it. Timers are
    /// kept, and run on the system's clock.
    pub fn clock_fallback(&self) -> Option<Fallback> {
        self.shared.bases.platform().clock.fallback()
    }

    /// What the drivers wait in; `None` if there are no drivers: the program's own loop, or hand,
    /// does their work.
    pub fn device(&self) -> Option<Device> {
        let host = self.shared.bases.platform();
        self.shared.process?;
        host.devices.iter().filter_map(BaseDevice::name).min_by_key(|&device| device as u8)
    }

    /// Why that is not what was asked for: the system refuses a call that it takes, from the
    /// beginning or since some later moment. Timers are kept, and wait on a futex.
    pub fn device_fallback(&self) -> Option<DeviceFallback> {
        self.shared.bases.platform().device_fallback()
    }

    /// How the running timers of one period that have a [`Phase`](crate::Phase) are spread;
    /// `None` if there are none. Takes a lock, O(log n).
    pub fn phases_of(&self, period: Duration) -> Option<CircleView> {
        let is_forked_child = self.shared.is_forked_child();
        (!is_forked_child).then(|| self.shared.phases().view(Ns::from_duration(period)))?
    }

    /// Takes a base out of use, as the kernel does with the timers of a CPU that goes offline:
    /// its timers go to the next base that is online, and so does whatever is armed from now on,
    /// timers pinned to it included. Returns how many timers moved.
    ///
    /// Does not wait. A timer whose callback runs on that base stays until that is over. Nothing
    /// is lost or fired twice; cancels work all the while. Takes two locks for each timer.
    pub fn offline(&self, base: CpuId) -> Result<u64, OnlineError> {
        if self.shared.is_forked_child() {
            return Ok(0);
        }
        let moved = self.shared.bases.offline(base)?;
        events::offline(base, moved);
        Ok(moved)
    }

    /// Takes a base into use again. Timers come to it as they are armed.
    pub fn online(&self, base: CpuId) -> Result<(), OnlineError> {
        if self.shared.is_forked_child() {
            return Ok(());
        }
        self.shared.bases.online(base)?;
        events::online(base);
        Ok(())
    }

    /// What has happened so far. Takes each base's lock once. No bases in a child.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.shared)
    }

    /// Every pending timer, base by base, with whose it is and when it is due; displays as a
    /// text. For people: O(pending) in time and memory.
    ///
    /// Holds up a base for at most 64 timers at a time and lets it go in between, so the list is of
    /// no single moment. No bases in a child.
    pub fn timer_list(&self) -> TimerList {
        TimerList::of(&self.shared)
    }

    /// What is pending, gathered by who armed it: for tests that are to leave nothing behind, and
    /// for programs whose [`Stats::pending`] grows. In debug builds, with
    /// [`Builder::note_armings`], it says where each was armed; [`VirtualTime`] notes that by
    /// itself. O(pending), each base held up for at most 64 timers at a time.
    ///
    /// [`VirtualTime`]: crate::VirtualTime
    pub fn leaks(&self) -> Leaks {
        Leaks::of(&self.shared)
    }
}

impl Shared {
    /// Is this a child that a fork has left without the drivers, and with whatever locks they
    /// held?
    #[inline]
    pub(crate) fn is_forked_child(&self) -> bool {
        self.process.is_some_and(|process| !process.is_this())
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.bases.platform().clock.now()
    }

    /// Whose a timer is.
    pub(crate) fn label_of(&self, timer: usize, task: owned::Task) -> &'static str {
        self.notes.of(timer).label.unwrap_or_else(|| task.label())
    }

    /// A cancel has found a timer in this state.
    #[inline]
    pub(crate) fn count_cancel(&self, found: Cancel) {
        if found != Cancel::Pending {
            self.counters.count_cancel(self.bases.platform().cpus.here(), found);
        }
    }

    /// Counts and reports a panic. Called within the callback's frame, as reporter and payload
    /// may drop the timer.
    #[cold]
    pub(crate) fn callback_panicked(&self, payload: Box<dyn Any + Send>) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = &self.on_panic {
            // The reporter is user code as well, and the driver must outlive it.
            if let Err(own) = catch_unwind(AssertUnwindSafe(|| report(payload.as_ref()))) {
                discard(own);
            }
        }
        discard(payload);
    }

    /// Runs everything that is due on one base.
    pub(crate) fn expire(&self, base: CpuId, wakers: &mut Wakers) -> Expired {
        let run = |firing: &_| owned::run(self, firing, Runner::Handler, wakers);
        let expired = self.bases.expire(base, run);
        self.end_batch(wakers);
        expired
    }

    /// What a base's driver thread does.
    pub(crate) fn drive(&self, base: CpuId) {
        let host = self.bases.platform();
        let device = &host.devices[base.index()];
        let (mut next_tick, mut wakers) = (self.next_tick(), Wakers::default());
        // Acquire: pairs with the Release in `end_drivers`.
        while !self.stop.load(Ordering::Acquire) {
            device.quiet();
            self.handle(base, &mut wakers);
            if next_tick <= self.now() {
                device.bell().count_tick();
                self.expirers.call(base, self.bases.tick(base));
                next_tick = self.next_tick();
            }
            let limit = match self.recheck {
                Ns::NEVER => next_tick,
                recheck => next_tick.min(self.now().after(recheck)),
            };
            device.sleep(host, limit, &self.stop);
        }
    }

    /// Is its clock moved by hand?
    pub(crate) fn is_virtual(&self) -> bool {
        self.process.is_none()
    }

    /// Are there driver threads?
    pub(crate) fn has_drivers(&self) -> bool {
        !self.threads().is_empty()
    }

    /// What a program's loop does when something is due. Returns how many timers fired.
    pub(crate) fn run_loop(&self, base: CpuId, wakers: &mut Wakers) -> u64 {
        self.bases.platform().devices[base.index()].quiet();
        self.expire(base, wakers).fired
    }

    /// Are the last handle and the last timer gone?
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `end_drivers`.
        self.stop.load(Ordering::Acquire)
    }

    /// What a driver does when it wakes.
    fn handle(&self, base: CpuId, wakers: &mut Wakers) {
        if self.bases.settings().deferral == Deferral::None {
            self.expire(base, wakers);
            return;
        }
        let run = |firing: &_| owned::run(self, firing, Runner::Handler, wakers);
        let call = self.bases.collect(base, run).call;
        self.expirers.call(base, call);
        self.end_batch(wakers);
    }

    /// What an expiry thread does until it is told to stop.
    pub(crate) fn serve(&self, base: CpuId) {
        let mut wakers = Wakers::default();
        self.expirers.serve(base, &self.stop, || self.fire(base, Runner::Thread, &mut wakers));
    }

    /// What the one that stands in for expiry threads does until it is told to stop.
    pub(crate) fn stand_in(&self) {
        let mut wakers = Wakers::default();
        self.expirers.stand_in(&self.stop, |base| self.fire(base, Runner::Rescuer, &mut wakers));
    }

    fn fire(&self, base: CpuId, runner: Runner, wakers: &mut Wakers) {
        self.bases.fire(base, runner, |firing| owned::run(self, firing, runner, wakers));
        self.end_batch(wakers);
    }

    /// What is left to be done when a batch of callbacks is over.
    fn end_batch(&self, wakers: &mut Wakers) {
        self.orphans.free_ended(self);
        if !wakers.is_empty() {
            self.wake(wakers);
        }
    }

    #[cold]
    fn wake(&self, wakers: &mut Wakers) {
        // Counts as a callback: what a waker drops, be it the last handle, must not wait for the
        // driver that wakes it.
        let callback = CallbackId::on(self, CpuId(u16::MAX), Runner::Handler);
        let panicked = frame::within(self, callback, || wakers.wake());
        self.panics.fetch_add(panicked, Ordering::Relaxed);
    }

    fn next_tick(&self) -> Ns {
        self.ticks.map_or(Ns::NEVER, |tick| tick.start(tick.floor(self.now()) + 1))
    }
}

/// Drops what somebody panicked with. That may panic in turn; what it does that with is leaked.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl Handle {
    /// For a driver, which must not keep itself running.
    pub(crate) fn for_driver(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    pub(crate) fn add_driver(&self, thread: Worker) {
        self.threads().push(thread);
    }
}

impl Deref for Handle {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        // Relaxed: who clones a handle has one, so the count does not come from zero.
        self.handles.fetch_add(1, Ordering::Relaxed);
        Handle(Arc::clone(&self.0))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // AcqRel: the last one sees what was done with the others.
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end_drivers();
        }
    }
}

impl Shared {
    /// Who sits where. Not to be asked for in a child that was left behind: the lock may have
    /// been held when the process forked.
    pub(crate) fn phases(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn end_drivers(&self) {
        if self.is_forked_child() {
            // These threads are not here, and to the C library not even to be let go of. A lock
            // that nobody holds but in passing may have been held when the process forked.
            if let Ok(mut threads) = self.threads.try_lock() {
                std::mem::forget(std::mem::take(&mut *threads));
            }
            return;
        }
        // Release: pairs with the Acquire in `drive`.
        self.stop.store(true, Ordering::Release);
        let host = self.bases.platform();
        for (base, device) in host.devices.iter().enumerate() {
            device.ring_to_end(&host.clock, CpuId(base as u16));
        }
        self.expirers.call_all();
        self.end_watching();
        // The last handle may have been dropped by a callback, which cannot wait for its own
        // driver, and must not for another that may be waiting for it. Each driver ends by
        // itself as soon as the callback that it is in has returned.
        let can_wait = !frame::is_in_callback();
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            if can_wait {
                thread.finish();
            }
        }
    }
}
