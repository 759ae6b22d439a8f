//! What drivers and timers have in common, and who keeps it running.

use super::arena::Arena;
use super::clock_timers::ClockTimers;
use super::counters::Counters;
use super::frame::{self, Nudge};
use super::glue::{Bases, Host, Task};
use super::notes::Notes;
use super::orphans::{Keeper, Orphans};
use crate::platform::expirer::Expirers;
use crate::platform::fork::Process;
use crate::platform::time_base::TimeBase;
use crate::platform::wakeup::Wakeup;
use crate::platform::worker::Worker;
use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tickless_core::bases::{self, cancel::Cancel};
use tickless_core::phase::Phases;
use tickless_core::time::{CpuId, Ns, Tick};

/// What drivers and timers have in common.
pub(crate) struct Shared {
    pub(crate) bases: Bases,
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
    pub(super) ticks: Option<Tick>,
    /// How often drivers look at their base whatever the device says.
    pub(super) recheck: Ns,
    /// How they get up for a deadline.
    pub(super) wakeup: Wakeup,
    threads: Mutex<Vec<Worker>>,
    pub(super) stop: AtomicBool,
    /// The phases in use by periodic timers that have one. A lock for starting and
    /// stopping them; no expiry takes it.
    phases: Mutex<Phases>,
    /// The timers on clocks of their own.
    pub(crate) clock_timers: ClockTimers,
    /// Where its drivers run; any if it has none and can do without.
    process: Process,
    /// Is its clock moved by hand?
    is_virtual: bool,
    /// The set's number, for the names of its threads; 0 for that of the process.
    set: u32,
    on_panic: Option<Arc<PanicReporter>>,
}

/// How a set of timers is set up.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The set's number; 0 for that of the process.
    pub(crate) set: u32,
    pub(crate) core: bases::Settings,
    /// Do drivers wake on every tick?
    pub(crate) ticks: bool,
    /// How often a driver looks by itself; [`Ns::NEVER`] if not at all.
    pub(crate) recheck: Ns,
    pub(crate) wakeup: Wakeup,
    pub(crate) on_panic: Option<Arc<PanicReporter>>,
    pub(crate) times_callbacks: bool,
    pub(crate) slow_after: Ns,
    pub(crate) notes_armings: bool,
}

/// Is handed what a callback panicked with.
pub(crate) type PanicReporter = dyn Fn(&(dyn Any + Send)) + Send + Sync;

/// Keeps the drivers running; the last one to go stops them. Drivers themselves have none.
///
/// All handles together own one count of the `Arc`, which the last one gives back: a handle that
/// comes and goes changes one number, not two.
#[derive(Debug)]
pub(crate) struct Handle(ManuallyDrop<Arc<Shared>>);

/// More handles than this are a program that leaks them without end, as for an `Arc`.
const HANDLES_MAX: usize = isize::MAX as usize;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("bases", &self.bases).finish_non_exhaustive()
    }
}

impl Nudge for Shared {
    fn nudge(&self, cpu: CpuId) {
        self.bases.recheck_waits(cpu);
    }
}

impl Keeper for Shared {
    fn bases(&self) -> &Bases {
        &self.bases
    }

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn callback_panicked(&self, payload: Box<dyn Any + Send>) {
        Shared::callback_panicked(self, payload);
    }
}

impl Shared {
    /// Is this a child that a fork has left without the drivers, and with whatever locks they
    /// held?
    #[inline]
    pub(crate) fn is_forked_child(&self) -> bool {
        !self.process.is_this()
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.bases.platform().clock.now()
    }

    /// The same if it takes no calls.
    #[inline]
    pub(crate) fn try_now(&self) -> Option<Ns> {
        self.bases.platform().clock.try_now()
    }

    /// What a clock shows.
    pub(crate) fn now_on(&self, base: TimeBase) -> Ns {
        self.bases.platform().clock.now_on(base)
    }

    /// A clock was set, or the system was suspended: puts every deadline where it belongs now.
    pub(crate) fn clocks_stepped(&self) {
        self.clock_timers.stepped();
    }

    /// Whose a timer is.
    pub(crate) fn label_of(&self, timer: usize, task: Task) -> &'static str {
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

    /// What one of its threads is called. The system has room for 15 bytes.
    pub(crate) fn thread_name(&self, kind: &str, base: Option<CpuId>) -> String {
        match (self.set, base) {
            (0, None) => kind.into(),
            (0, Some(base)) => format!("{kind}/{}", base.0),
            (set, None) => format!("{kind}/{set}"),
            (set, Some(base)) => format!("{kind}/{set}.{}", base.0),
        }
    }

    /// Is its clock moved by hand?
    pub(crate) fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// Are there driver threads?
    pub(crate) fn has_drivers(&self) -> bool {
        !self.threads().is_empty()
    }

    /// Are the last handle and the last timer gone?
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `end_drivers`.
        self.stop.load(Ordering::Acquire)
    }
}

/// Drops what somebody panicked with. That may panic in turn; what it does that with is leaked.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl Handle {
    /// A set that nobody drives yet. `process` is where its drivers will run; `None` if it can do
    /// without.
    pub(crate) fn new(host: Host, setup: Setup, process: Option<Process>) -> Handle {
        let count = host.cpus.bases();
        Handle(ManuallyDrop::new(Arc::new(Shared {
            bases: Bases::new(host, count, setup.core),
            panics: AtomicU64::new(0),
            counters: Counters::new(count, setup.times_callbacks, setup.slow_after),
            notes: Notes::new(setup.notes_armings),
            orphans: Orphans::default(),
            arena: Arena::default(),
            handles: AtomicUsize::new(1),
            expirers: Expirers::new(count),
            ticks: setup.ticks.then_some(setup.core.tick),
            recheck: setup.recheck,
            wakeup: setup.wakeup,
            threads: Mutex::default(),
            stop: AtomicBool::new(false),
            phases: Mutex::new(Phases::new()),
            clock_timers: ClockTimers::default(),
            process: process.unwrap_or(Process::any()),
            is_virtual: process.is_none(),
            set: setup.set,
            on_panic: setup.on_panic,
        })))
    }

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
    #[inline]
    fn clone(&self) -> Handle {
        // Relaxed: who clones a handle has one, so the count does not come from zero.
        if self.handles.fetch_add(1, Ordering::Relaxed) > HANDLES_MAX {
            std::process::abort();
        }
        // SAFETY: one more owner of the count that all handles own together, which the last of them
        // gives back: this one is counted.
        Handle(unsafe { core::ptr::read(&self.0) })
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: the last one sees what was done with the others.
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end();
        }
    }
}

impl Handle {
    /// This was the last one.
    #[cold]
    fn end(&mut self) {
        if self.is_forked_child() {
            // The drivers are not here to be joined. Another thread may have held any lock of the
            // set at the fork, and left what it guards half changed: nothing is freed (K4).
            return;
        }
        self.end_drivers();
        // SAFETY: no other handle is left, and this one is being dropped.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Shared {
    /// The phases in use. Not to be asked for in a child that was left behind: the lock may have
    /// been held when the process forked.
    pub(crate) fn phases(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn end_drivers(&self) {
        // Release: pairs with the Acquire in `drive`.
        self.stop.store(true, Ordering::Release);
        let host = self.bases.platform();
        for (base, device) in host.devices.iter().enumerate() {
            device.ring_to_end(&host.clock, CpuId(base as u16));
        }
        self.expirers.call_all();
        self.clock_timers.end_watching();
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
