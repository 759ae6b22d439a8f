//! The state that the drivers and timers of a set share, and the handles that keep it running.

use super::arena::Arena;
use super::clock_timers::ClockTimers;
use super::counters::Counters;
use super::frame::{self, RecheckWaits};
use super::glue::{Bases, Host, Task};
use super::notes::Notes;
use super::orphans::{Keeper, Orphans};
use super::users::{Line, Users};
use crate::platform::clock::ClockSource;
use crate::platform::expirer::Expirers;
use crate::platform::fork::Process;
use crate::platform::time_base::TimeBase;
use crate::platform::wakeup::Wakeup;
use crate::platform::worker::Worker;
use std::any::Any;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tickless_core::bases::{self, cancel::Cancel};
use tickless_core::phase::Phases;
use tickless_core::time::{CpuId, Ns, Tick};

/// The state that the drivers and timers of a set share.
pub(crate) struct Shared {
    pub(crate) bases: Bases,
    pub(crate) panics: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) notes: Notes,
    pub(crate) orphans: Orphans,
    /// The memory of the timers.
    pub(crate) arena: Arena,
    /// The number of [`OpenSet`]s.
    open: Line<AtomicUsize>,
    /// The number of [`Handle`]s.
    pub(crate) users: Users<AtomicU64>,
    /// Wakes the expiry threads, if there are any.
    pub(crate) expirers: Expirers,
    /// The tick, if drivers wake on each one.
    pub(super) ticks: Option<Tick>,
    /// How often a driver checks its base without an event; [`Ns::NEVER`] for never.
    pub(super) recheck: Ns,
    /// How drivers wake for a deadline.
    pub(super) wakeup: Wakeup,
    threads: Mutex<Vec<Worker>>,
    pub(super) stop: AtomicBool,
    /// The phases that periodic timers use. Starts and stops take the lock; expiries do not.
    phases: Mutex<Phases>,
    /// The timers on clocks that can be set or include suspended time.
    pub(crate) clock_timers: ClockTimers,
    /// The process that its drivers run in, or that moves its clock.
    process: Process,
    /// Whether the program moves its clock.
    is_virtual: bool,
    /// The set's number, for the names of its threads; 0 for the set of the process.
    set: u32,
    on_panic: Option<Arc<PanicReporter>>,
}

/// The settings of a set of timers.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The set's number; 0 for the set of the process.
    pub(crate) set: u32,
    pub(crate) lifetime: Lifetime,
    pub(crate) core: bases::Settings,
    /// Whether drivers wake on every tick.
    pub(crate) ticks: bool,
    /// How often a driver checks its base without an event; [`Ns::NEVER`] for never.
    pub(crate) recheck: Ns,
    pub(crate) wakeup: Wakeup,
    pub(crate) on_panic: Option<Arc<PanicReporter>>,
    pub(crate) times_callbacks: bool,
    pub(crate) slow_after: Ns,
    pub(crate) notes_armings: bool,
}

/// Gets the payload of a callback's panic.
pub(crate) type PanicReporter = dyn Fn(&(dyn Any + Send)) + Send + Sync;

/// When a set of timers ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    /// With the process: nothing counts its users.
    Process,
    /// When its last user is gone.
    Users,
}

/// Keeps the drivers running for a timer. Drivers have none. Cloning and dropping it changes a
/// count of the caller's CPU only, until the set is closed.
#[derive(Debug)]
pub(crate) struct Handle(ManuallyDrop<Arc<Shared>>);

/// Keeps a set open, so that timers can be made: what every `Timers` has. When the last one is
/// dropped the set is closed, and then the last handle stops the drivers.
///
/// All of these and all handles together own one count of the `Arc`.
#[derive(Debug)]
pub(crate) struct OpenSet(ManuallyDrop<Handle>);

/// A program with more clones than this leaks them without end, as for an `Arc`.
const CLONES_MAX: usize = isize::MAX as usize;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("bases", &self.bases).finish_non_exhaustive()
    }
}

impl RecheckWaits for Shared {
    fn recheck_waits(&self, cpu: CpuId) {
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
    /// Returns whether this process is a forked child of the one that created the set: it has no
    /// driver threads, and may have inherited held locks.
    #[inline]
    pub(crate) fn is_forked_child(&self) -> bool {
        !self.process.is_this()
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.bases.platform().clock.now()
    }

    /// Returns the number of the CPU that the caller runs on, which may be out of date at once.
    #[inline]
    pub(crate) fn cpu(&self) -> usize {
        self.bases.platform().cpus.current().number()
    }

    /// Returns the time if that takes no system call.
    #[inline]
    pub(crate) fn try_now(&self) -> Option<Ns> {
        self.bases.platform().clock.try_now()
    }

    /// Returns the time of a clock.
    pub(crate) fn now_on(&self, base: TimeBase) -> Ns {
        self.bases.platform().clock.now_on(base)
    }

    /// Converts all deadlines again: a clock was set, or the system was suspended.
    pub(crate) fn clocks_stepped(&self) {
        self.clock_timers.stepped();
    }

    /// Returns the label of a timer, or else that of its type.
    pub(crate) fn label_of(&self, timer: usize, task: Task) -> &'static str {
        self.notes.of(timer).label.unwrap_or_else(|| task.label())
    }

    /// Counts a cancel by what it has found.
    #[inline]
    pub(crate) fn count_cancel(&self, found: Cancel) {
        if found != Cancel::Pending {
            self.counters.count_cancel(self.bases.platform().cpus.here(), found);
        }
    }

    /// Counts and reports a panic. Call it within the callback's frame: the reporter and the drop
    /// of the payload may drop the timer.
    #[cold]
    pub(crate) fn callback_panicked(&self, payload: Box<dyn Any + Send>) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = &self.on_panic {
            // The reporter may panic, too, and the driver must survive that.
            if let Err(own) = catch_unwind(AssertUnwindSafe(|| report(payload.as_ref()))) {
                discard(own);
            }
        }
        discard(payload);
    }

    /// Returns the name of one of its threads. The system keeps 15 bytes of it.
    pub(crate) fn thread_name(&self, kind: &str, base: Option<CpuId>) -> String {
        match (self.set, base) {
            (0, None) => kind.into(),
            (0, Some(base)) => format!("{kind}/{}", base.0),
            (set, None) => format!("{kind}/{set}"),
            (set, Some(base)) => format!("{kind}/{set}.{}", base.0),
        }
    }

    /// Returns whether the program moves its clock.
    pub(crate) fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// Returns whether there are driver threads.
    pub(crate) fn has_drivers(&self) -> bool {
        !self.threads().is_empty()
    }

    fn lifetime(&self) -> Lifetime {
        if self.users.are_counted() { Lifetime::Users } else { Lifetime::Process }
    }

    /// Returns whether the last handle and the last timer have been dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `end_drivers`.
        self.stop.load(Ordering::Acquire)
    }
}

/// Drops the payload of a panic. If that panics, the second payload is leaked.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl OpenSet {
    /// A set without drivers.
    pub(crate) fn new(host: Host, setup: Setup) -> OpenSet {
        let count = host.cpus.bases();
        let is_virtual = host.clock.source() == ClockSource::Manual;
        let arena = Arena::new(host.cpus.current(), usize::from(count));
        let users = match setup.lifetime {
            Lifetime::Process => Users::new(0),
            Lifetime::Users => Users::new(usize::from(count)),
        };
        OpenSet(ManuallyDrop::new(Handle(ManuallyDrop::new(Arc::new(Shared {
            bases: Bases::new(host, count, setup.core),
            panics: AtomicU64::new(0),
            counters: Counters::new(count, setup.times_callbacks, setup.slow_after),
            notes: Notes::new(setup.notes_armings),
            orphans: Orphans::default(),
            arena,
            open: Line(AtomicUsize::new(1)),
            users,
            expirers: Expirers::new(count),
            ticks: setup.ticks.then_some(setup.core.tick),
            recheck: setup.recheck,
            wakeup: setup.wakeup,
            threads: Mutex::default(),
            stop: AtomicBool::new(false),
            phases: Mutex::new(Phases::new()),
            clock_timers: ClockTimers::default(),
            process: Process::this(),
            is_virtual,
            set: setup.set,
            on_panic: setup.on_panic,
        })))))
    }
}

impl Clone for OpenSet {
    fn clone(&self) -> OpenSet {
        // Relaxed: the caller has one, so the number is not zero.
        if self.lifetime() == Lifetime::Users
            && self.open.0.fetch_add(1, Ordering::Relaxed) > CLONES_MAX
        {
            std::process::abort();
        }
        // SAFETY: `self` and the new one own one count of the `Arc` together with all others, and
        // the new one has been counted.
        OpenSet(unsafe { core::ptr::read(&self.0) })
    }
}

impl Drop for OpenSet {
    fn drop(&mut self) {
        // AcqRel: the last one sees what was done through the others.
        if self.lifetime() == Lifetime::Users
            && self.open.0.fetch_sub(1, Ordering::AcqRel) == 1
            && self.users.close()
        {
            self.0.end();
        }
    }
}

impl Deref for OpenSet {
    type Target = Handle;

    #[inline]
    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl Handle {
    /// Makes a handle for another timer.
    #[inline]
    pub(crate) fn handle(&self) -> Handle {
        self.users.add(|| self.cpu());
        // SAFETY: all handles own one count of the `Arc` together, and this one has been counted.
        Handle(unsafe { core::ptr::read(&self.0) })
    }

    /// A reference for a driver, which does not keep the drivers running.
    pub(crate) fn for_driver(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }
}

impl Deref for Handle {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if self.users.remove(|| self.cpu()) {
            self.end();
        }
    }
}

impl Handle {
    /// Stops the drivers: this was the last user of a closed set.
    #[cold]
    fn end(&mut self) {
        if self.is_forked_child() {
            // There are no drivers to join. Another thread may have held any lock of the set at the
            // fork, and left the state under it half changed: nothing is freed (K4).
            return;
        }
        self.end_drivers();
        // SAFETY: this was the last user, and it is being dropped.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Shared {
    /// Locks the phases in use. Not in a forked child: another thread may have held the lock when
    /// the process forked.
    pub(crate) fn phases(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts and adds a thread, unless the set has ended: then nothing would wait for the thread.
    pub(crate) fn add_driver(&self, start: impl FnOnce() -> io::Result<Worker>) -> io::Result<()> {
        let mut threads = self.threads();
        if !self.is_stopped() {
            threads.push(start()?);
        }
        Ok(())
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
        if let Some(starter) = &host.starter {
            starter.call();
        }
        self.clock_timers.end_watching();
        // A callback that drops the last handle cannot wait for its own driver, and must not wait
        // for another one, which may wait for it. Each driver ends when the callback that it is in
        // has returned.
        let can_wait = !frame::is_in_callback();
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            if can_wait {
                thread.finish();
            }
        }
    }
}
