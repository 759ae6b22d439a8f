//! The state that a set's drivers and timers share, and the handles that keep its drivers running.

use super::arena::Arena;
use super::clock_timers::ClockTimers;
use super::counters::Counters;
use super::frame::{self, RecheckWaits};
use super::glue::{Bases, Host, Task};
use super::notes::Notes;
use super::orphans::{Keeper, Orphans};
use super::users::Users;
use crate::platform::clock::ClockSource;
use crate::platform::expirer::Expirers;
use crate::platform::fork::Process;
use crate::platform::locked::locked;
use crate::platform::runtime::Runtime;
use crate::platform::time_base::TimeBase;
use crate::platform::wakeup::Wakeup;
use crate::platform::worker::Worker;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::{fmt, io};
use tickless_core::bases::{self, cancel::Cancel};
use tickless_core::link::Link;
use tickless_core::phase::Phases;
use tickless_core::platform::OwnLine;
use tickless_core::time::{CpuId, Ns, Tick};

// In memory, what every sleep uses comes first: a program with many sets that it uses in turn
// misses the cache for each line.
#[repr(C)]
pub(crate) struct Shared {
    pub(crate) users: Users<AtomicU64>,
    /// The process that created the set. Only in this process do its timers fire.
    process: Process,
    pub(crate) notes: Notes,
    pub(crate) bases: Bases,
    pub(crate) panics: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) orphans: Orphans,
    pub(crate) arena: Arena,
    open: OwnLine<AtomicUsize>,
    pub(crate) expirers: Expirers,
    /// The ticks on which the drivers wake; `None` if they wake for deadlines only.
    pub(super) ticks: Option<Tick>,
    pub(super) wakeup: Wakeup,
    threads: Mutex<Vec<Worker>>,
    pub(super) stop: AtomicBool,
    /// The phases, the places within a period at which periodic timers fire, that are in use.
    /// Locked when such a timer is started or stopped, and not when it fires.
    phases: Mutex<Phases>,
    pub(crate) clock_timers: ClockTimers,
    is_virtual: bool,
    set: u32,
    on_panic: Option<Arc<PanicReporter>>,
}

#[derive(Clone)]
pub(crate) struct Setup {
    /// The set's number; 0 for the set that the whole process shares.
    pub(crate) set: u32,
    pub(crate) lifetime: Lifetime,
    pub(crate) core: bases::Settings,
    pub(crate) ticks: bool,
    pub(crate) wakeup: Wakeup,
    pub(crate) on_panic: Option<Arc<PanicReporter>>,
    pub(crate) times_callbacks: bool,
    pub(crate) slow_after: Ns,
    pub(crate) notes_armings: bool,
}

/// A function of the program that gets the payload of each panic of a callback.
pub(crate) type PanicReporter = dyn Fn(&(dyn Any + Send)) + Send + Sync;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    /// The set ends with the process. Its users (timers and `Timers`) are not counted.
    Process,
    /// The set ends when its last user, a timer or a `Timers`, has been dropped.
    Users,
}

/// Keeps the drivers of a set running; every timer has one. The drivers themselves have none.
/// Cloning or dropping one only changes a counter of the caller's CPU, until the set is closed.
#[derive(Debug)]
pub(crate) struct Handle(ManuallyDrop<Arc<Shared>>);

/// Keeps a set open, so that the program can make timers; every `Timers` contains one. Dropping the
/// last one closes the set: from then on, dropping the last handle stops the drivers. All
/// `OpenSet`s and [`Handle`]s of a set together own a single reference count of its `Arc`.
#[derive(Debug)]
pub(crate) struct OpenSet(ManuallyDrop<Handle>);

/// The process aborts at this number of clones, before the counter overflows, as `Arc` does.
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

/// Returns the default slack of a sleep: a thousandth of the duration, at most 50 ms.
pub(crate) fn default_slack(after: Ns) -> Ns {
    Ns(after.0 / 1_000).min(Ns::from_ms(50))
}

impl Shared {
    /// Returns whether this process is a forked child of the one that created the set: it has no
    /// driver threads, and has perhaps inherited held locks.
    #[inline]
    pub(crate) fn is_forked_child(&self) -> bool {
        !self.process.is_this()
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.bases.platform().clock.now()
    }

    /// Returns the time at which to arm a timer; `None` if the timer is ready at once, because its
    /// `deadline` has passed. The timers of an asynchronous runtime are not until it has looked for
    /// due timers. Where it alone decides that, the time of a precise timer, which nothing uses, is
    /// zero.
    #[inline]
    pub(super) fn time_before<L: Link>(&self, deadline: Ns) -> Option<Ns> {
        let runtime = self.bases.platform().clock.runtime();
        if let Some(runtime) = runtime.filter(|runtime| !L::COARSE && runtime.is_steady()) {
            return (!runtime.has_seen(deadline)).then_some(Ns::ZERO);
        }
        let now = self.now();
        let waits = deadline > now || runtime.is_some_and(|runtime| !runtime.has_seen(deadline));
        waits.then_some(now)
    }

    /// Records that a timer was disarmed, or that a coarse timer was armed. A virtual clock of a
    /// runtime moves to the deadline for which the task waits, so wake the task: otherwise the
    /// clock would move to a timer that is not pending, or past the deadline of a coarse timer,
    /// which is before the end of its bucket.
    #[inline]
    pub(super) fn changed(&self) {
        if let Some(runtime) = self.virtual_runtime() {
            runtime.wake_task();
        }
    }

    /// Returns the number of the CPU on which the caller runs. The caller can be moved at any time.
    #[inline]
    pub(crate) fn cpu(&self) -> usize {
        self.bases.platform().cpus.current().number()
    }

    pub(crate) fn now_on(&self, base: TimeBase) -> Ns {
        self.bases.platform().clock.now_on(base)
    }

    /// Converts the deadlines of the clock timers to the set's clock again, after a clock was set.
    pub(crate) fn clocks_stepped(&self) {
        self.clock_timers.stepped();
    }

    /// Returns the label of the timer at this address, or the default label of its type.
    pub(crate) fn label_of(&self, timer: usize, task: Task) -> &'static str {
        self.notes.of(timer).label.unwrap_or_else(|| task.label())
    }

    /// Counts a cancel that found the timer idle or its callback running.
    #[inline]
    pub(crate) fn count_cancel(&self, found: Cancel) {
        if found != Cancel::Pending {
            self.counters.count_cancel(self.bases.platform().cpus.here(), found);
        }
    }

    /// Counts and reports the panic of a callback. Call it while the thread still counts as inside
    /// that callback: the reporter can drop the timer, which must not wait for the callback.
    #[cold]
    pub(crate) fn callback_panicked(&self, payload: Box<dyn Any + Send>) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = &self.on_panic {
            // The reporter can panic, too, and the driver must survive that.
            if let Err(own) = catch_unwind(AssertUnwindSafe(|| report(payload.as_ref()))) {
                discard(own);
            }
        }
        discard(payload);
    }

    /// Returns the name for one of the set's threads. The system keeps only its first 15 bytes.
    pub(crate) fn thread_name(&self, kind: &str, base: Option<CpuId>) -> String {
        match (self.set, base) {
            (0, None) => kind.into(),
            (0, Some(base)) => format!("{kind}/{}", base.0),
            (set, None) => format!("{kind}/{set}"),
            (set, Some(base)) => format!("{kind}/{set}.{}", base.0),
        }
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.is_virtual || self.virtual_runtime().is_some()
    }

    /// Returns the slack of a sleep of this duration; zero on a clock that the program moves.
    pub(crate) fn default_slack(&self, after: Ns) -> Ns {
        if self.is_virtual() {
            return Ns::ZERO;
        }
        // In a tokio runtime a sixteenth of the duration, at most tokio's resolution of 1 ms. From
        // 1 s on, the default slack is larger: a thousandth of the duration.
        let share = match self.bases.platform().clock.runtime() {
            Some(_) => Ns(after.0 / 16).min(Ns::from_ms(1)),
            None => Ns::ZERO,
        };
        share.max(default_slack(after))
    }

    #[inline]
    fn virtual_runtime(&self) -> Option<&dyn Runtime> {
        self.bases.platform().clock.runtime().filter(|runtime| runtime.is_virtual())
    }

    pub(crate) fn has_drivers(&self) -> bool {
        !locked(&self.threads).is_empty()
    }

    /// Returns whether the last handle and the last timer have been dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `end_drivers`.
        self.stop.load(Ordering::Acquire)
    }
}

/// Drops the payload of a panic. If the drop panics, too, leaks the second payload.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl OpenSet {
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
            open: OwnLine(AtomicUsize::new(1)),
            users,
            expirers: Expirers::new(count),
            ticks: setup.ticks.then_some(setup.core.tick),
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
        // Relaxed: the caller has an `OpenSet`, so their number cannot reach zero in this call.
        if self.users.are_counted && self.open.0.fetch_add(1, Ordering::Relaxed) > CLONES_MAX {
            std::process::abort();
        }
        // SAFETY: all `OpenSet`s and handles of a set share one count of the `Arc`. The copy has
        // just been counted in `open`, unless the set never ends.
        OpenSet(unsafe { core::ptr::read(&self.0) })
    }
}

impl Drop for OpenSet {
    fn drop(&mut self) {
        // AcqRel: the thread that drops the last `OpenSet` sees what other threads did before they
        // dropped theirs.
        if self.users.are_counted
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
    /// Returns another handle, and counts it for the current CPU.
    #[inline]
    pub(crate) fn handle(&self) -> Handle {
        self.users.add(|| self.cpu());
        // SAFETY: all handles of a set share one count of the `Arc`. The copy has just been counted
        // in `users`, unless the set never ends.
        Handle(unsafe { core::ptr::read(&self.0) })
    }

    /// Returns a reference for a driver. It keeps the memory alive, but not the drivers running.
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
    /// Called when the last user of a closed set is dropped: stops the drivers and drops the state.
    #[cold]
    fn end(&mut self) {
        if self.is_forked_child() {
            // A forked child has no drivers to join. At the fork, another thread perhaps held a
            // lock of the set, and had changed only half of the state under that lock. So nothing
            // is freed (K4: a child frees nothing of its parent's sets).
            return;
        }
        self.end_drivers();
        // SAFETY: this was the last user, and it is being dropped.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Shared {
    /// Locks the set's phases. Not allowed in a forked child, where the lock can be held forever.
    pub(crate) fn phases(&self) -> MutexGuard<'_, Phases> {
        locked(&self.phases)
    }

    /// Starts a driver thread and adds it to the set. If the set has ended, starts nothing: the end
    /// of the set joins all driver threads, and would miss this one.
    pub(crate) fn add_driver(&self, start: impl FnOnce() -> io::Result<Worker>) -> io::Result<()> {
        let mut threads = locked(&self.threads);
        if !self.is_stopped() {
            threads.push(start()?);
        }
        Ok(())
    }

    /// Detaches the calling thread, which is ending, to let the system free its stack.
    pub(crate) fn detach_this_thread(&self) {
        locked(&self.threads).retain(|worker| !worker.is_this_thread());
    }

    /// Ends the threads of the set. Waits for them unless a callback calls this.
    #[cold]
    fn end_drivers(&self) {
        // Release: pairs with the Acquire in `drive`.
        self.stop.store(true, Ordering::Release);
        let host = self.bases.platform();
        for (base, device) in host.devices.iter().enumerate() {
            device.ring_to_end(CpuId(base as u16));
        }
        self.expirers.call_all();
        if let Some(starter) = &host.starter {
            starter.call();
        }
        self.clock_timers.end_watching();
        // A callback must not wait for its own driver, nor for another, whose callback perhaps
        // waits for this one. The drivers end when their current callbacks have returned.
        let can_wait = !frame::is_in_callback();
        let threads = std::mem::take(&mut *locked(&self.threads));
        for thread in threads {
            if can_wait {
                thread.finish();
            }
        }
    }
}
