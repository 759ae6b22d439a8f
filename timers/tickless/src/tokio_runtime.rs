//! The timers of tokio's runtimes, and the choice of timers by the context in which a caller runs.
//!
//! Each runtime has one set of timers with one base. A timerfd in tokio's reactor fires them. While
//! the program moves the runtime's clock (`tokio::time::pause`), a task fires them instead. The
//! task waits in a sleep of tokio's, so tokio advances its clock to the deadlines of these timers,
//! too. `use_tokio_sleep` chooses such a sleep on a running clock.
//!
//! The task owns the set; other references last no longer than a call. When the runtime shuts down,
//! it drops the task, and all pending timers of the set fire, as those of tokio do.

mod clock;
mod driver;
pub(crate) mod rescue;

use crate::hrtimer::HrTimer;
use crate::platform::clock::{ClockKind, ClockSource, HostClock};
use crate::platform::fork::ProcessLock;
use crate::process;
use crate::timer::shared;
use crate::timers::Timers;
use crate::virtual_time::VirtualTime;
pub(crate) use clock::END;
use clock::{ANY_MOVES, RuntimeClock};
use driver::Driver;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tickless_core::link::prefetch_at;
use tickless_core::time::{Instant, Ns};
use tokio::runtime::{Handle, Id};

thread_local! {
    /// The virtual clocks that this thread has entered. The innermost is last.
    static ENTERED: RefCell<Vec<VirtualTime>> = const { RefCell::new(Vec::new()) };
    /// The runtimes whose timers this thread has used: saves the lock of `ALL`.
    static USED: RefCell<Runtimes> = const { RefCell::new(NO_RUNTIMES) };
}

static ALL: ProcessLock<Runtimes> = ProcessLock::new(NO_RUNTIMES);

type Runtimes = HashMap<Id, Weak<RuntimeTimers>, BuildHasherDefault<IdHasher>>;

const NO_RUNTIMES: Runtimes = HashMap::with_hasher(BuildHasherDefault::new());

/// Tokio numbers its runtimes, so the number itself is a hash without collisions. The table also
/// needs bits at the top.
#[derive(Default)]
struct IdHasher(u64);

// In memory, what every sleep uses comes first, beside the reference counts.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RuntimeTimers {
    timers: Timers,
    clock: Arc<RuntimeClock>,
    /// The address of the set's base, to prefetch it.
    base: usize,
    driver: Driver,
    /// Makes a driver thread of the process check for late timers, if the program asks for that.
    rescue: Mutex<Option<HrTimer>>,
}

/// The timers of the caller's context: an entered virtual clock, a runtime, or the process.
#[derive(Debug)]
pub(crate) enum Current {
    Process,
    Virtual(VirtualTime),
    Runtime(Arc<RuntimeTimers>),
}

/// Returns the timers that the caller's context uses, and starts them if necessary.
#[track_caller]
pub(crate) fn current() -> Current {
    if let Some(time) = entered() {
        return Current::Virtual(time);
    }
    let timers = match Handle::try_current() {
        Ok(runtime) => of(&runtime),
        Err(_) => None,
    };
    timers.map_or(Current::Process, Current::Runtime)
}

/// Returns the timers of the caller's context if the program moves their clock: an entered virtual
/// clock, or the clock of a runtime that was paused. What is made from the process's timers uses
/// these there.
#[track_caller]
pub(crate) fn moved() -> Option<Current> {
    if let Some(time) = entered() {
        return Some(Current::Virtual(time));
    }
    let runtime = Handle::try_current().ok()?;
    clock::was_paused(&runtime).then(|| of(&runtime).map(Current::Runtime))?
}

/// Returns `false` if [`check_clock`] succeeds for all timers of the process, as far as is known
/// without looking at the caller's context.
#[inline]
pub(crate) fn any_moves() -> bool {
    ANY_MOVES.load(Ordering::Relaxed)
}

/// Why something that waits by the clock of some timers cannot be used here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClockError {
    /// The timers are those of a runtime that has ended.
    Ended,
    /// The program moves the caller's clock, which is not that of the timers.
    Other { caller: ClockKind, permits: ClockKind },
}

/// Returns an error if what waits by the clock of `timers` would give wrong answers to a caller in
/// this context. A virtual clock never does: the program has chosen it.
pub(crate) fn check_clock(timers: &Timers) -> Result<(), ClockError> {
    fn clock_of(timers: &Timers) -> &HostClock {
        &timers.shared.bases.platform().clock
    }
    let clock = clock_of(timers);
    if clock.runtime().is_some_and(|runtime| runtime.has_ended()) {
        return Err(ClockError::Ended);
    }
    if clock.source() == ClockSource::Manual {
        return Ok(());
    }
    let kind_of = |clock: &HostClock| match clock.runtime() {
        Some(_) => ClockKind::Runtime,
        None if clock.source() == ClockSource::Manual => ClockKind::Virtual,
        None => ClockKind::System,
    };
    match moved().as_ref().and_then(Current::timers).map(clock_of) {
        Some(here) if !clock.agrees_with(here) => {
            Err(ClockError::Other { caller: kind_of(here), permits: kind_of(clock) })
        }
        _ => Ok(()),
    }
}

/// Returns the time on the clock of [`current`], without starting timers.
pub(crate) fn now() -> Instant {
    if let Some(time) = entered() {
        return time.now();
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let timers = clock::can_pause(&runtime).then(|| used(&runtime)).flatten();
            timers.map_or_else(|| clock::now_in(&runtime), |timers| timers.clock.now_here()).into()
        }
        Err(_) => process::now(),
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 << 8 | u64::from(byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = number ^ number.rotate_right(7);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Current {
    pub(crate) fn now(&self) -> Instant {
        match self {
            Current::Process => process::now(),
            Current::Virtual(time) => time.now(),
            Current::Runtime(runtime) => runtime.clock.now_here().into(),
        }
    }

    pub(crate) fn timers(&self) -> Option<&Timers> {
        match self {
            Current::Process => process::timers(),
            Current::Virtual(time) => Some(time.timers()),
            Current::Runtime(runtime) => Some(&runtime.timers),
        }
    }

    pub(crate) fn handle(&self) -> Option<&shared::Handle> {
        self.timers().map(|timers| &*timers.shared)
    }

    /// Returns the slack of a sleep of this duration; zero on a clock that the program moves.
    pub(crate) fn slack(&self, after: Ns) -> Ns {
        match self {
            Current::Process => shared::default_slack(after),
            Current::Virtual(_) => Ns::ZERO,
            Current::Runtime(runtime) => runtime.timers.shared.default_slack(after),
        }
    }
}

/// Returns the timers of a runtime that the caller is in, and starts them if necessary.
#[track_caller]
fn of(runtime: &Handle) -> Option<Arc<RuntimeTimers>> {
    if let Some(timers) = used(runtime) {
        return Some(timers);
    }
    let timers = find_or_start(runtime, |_| ())?;
    let (id, weak) = (runtime.id(), Arc::downgrade(&timers));
    let _ = USED.try_with(|used| insert(&mut used.borrow_mut(), id, weak));
    Some(timers)
}

fn used(runtime: &Handle) -> Option<Arc<RuntimeTimers>> {
    let used = USED.try_with(|used| used.borrow().get(&runtime.id()).and_then(Weak::upgrade));
    // `None` while a thread's thread-locals are being destroyed.
    let timers = used.ok().flatten()?;
    // Fetch what the caller uses next, in a program with many runtimes, while it reads the clock.
    let set: *const shared::Shared = &**timers.timers.shared;
    (0..2).for_each(|line| prefetch_at(set.wrapping_byte_add(line * 64)));
    let base: *const u8 = ptr::without_provenance(timers.base);
    (0..3).for_each(|line| prefetch_at(base.wrapping_add(line * 64)));
    Some(timers)
}

fn insert(runtimes: &mut Runtimes, id: Id, timers: Weak<RuntimeTimers>) {
    if runtimes.len() == runtimes.capacity() {
        // Before the table grows, remove the runtimes that have ended: O(1) for each start.
        runtimes.retain(|_, timers| timers.strong_count() > 0);
        let live = runtimes.len();
        runtimes.reserve(live + 1);
    }
    runtimes.insert(id, timers);
}

/// Returns the timers of a runtime, and starts them if necessary. `set` changes the settings of
/// their clock, before they start.
#[cold]
#[track_caller]
fn find_or_start(runtime: &Handle, set: fn(&RuntimeClock)) -> Option<Arc<RuntimeTimers>> {
    let id = runtime.id();
    let mut all = ALL.lock();
    if let Some(timers) = all.get(&id).and_then(Weak::upgrade) {
        set(&timers.clock);
        return Some(timers);
    }
    let clock = RuntimeClock::of(runtime);
    set(&clock);
    let timers = RuntimeTimers::start(runtime, clock)?;
    insert(&mut all, id, timers.clone());
    // `None` if the runtime has been shut down: it has dropped the task, which owned the timers.
    timers.upgrade()
}

/// Makes the timers of the runtime that the caller is in wait in a sleep of tokio's instead of a
/// timerfd, for as long as the runtime exists. They then have tokio's resolution of a millisecond,
/// and the library makes no system call to arm and to fire them. The runtime must be built with
/// `enable_time`, and needs no `enable_io`.
///
/// # Panics
///
/// If the caller is in no runtime, or in one without `enable_time`, as `tokio::time::sleep` does.
#[track_caller]
pub fn use_tokio_sleep() {
    // If the runtime has no timers, panic here, because a later panic would end the task.
    drop(tokio::time::sleep(Duration::ZERO));
    find_or_start(&Handle::current(), RuntimeClock::use_sleep);
}

/// Like [`current`], but also checks whether the clock of a runtime was paused.
#[track_caller]
pub(crate) fn checked() -> Current {
    let current = current();
    if let Current::Runtime(runtime) = &current {
        runtime.clock.check();
    }
    current
}

/// A guard that keeps a thread on a virtual clock until the guard is dropped.
#[derive(Debug)]
struct Entered {
    time: VirtualTime,
    /// Makes the type `!Send`: the guard belongs to its thread.
    on_thread: PhantomData<*const ()>,
}

impl VirtualTime {
    /// Makes this thread use the virtual clock until the returned guard is dropped: for all of
    /// [`tokio_time`](crate::tokio_time) and [`future`](crate::future), and for what the thread
    /// creates from [`Timers::process`]. What was created earlier stays on its clock; a limiter
    /// then [refuses](crate::bandwidth::AcquireError::OtherClock) the thread. If a thread has
    /// entered several clocks, it uses the innermost.
    #[must_use = "the thread leaves the virtual clock as soon as the guard is dropped"]
    pub fn enter(&self) -> impl fmt::Debug + use<> {
        enter_until_the_thread_ends(self);
        Entered { time: self.clone(), on_thread: PhantomData }
    }
}

pub(crate) fn enter_until_the_thread_ends(time: &VirtualTime) {
    ANY_MOVES.store(true, Ordering::Relaxed);
    ENTERED.with_borrow_mut(|entered| entered.push(time.clone()));
}

#[inline]
pub(crate) fn entered() -> Option<VirtualTime> {
    if !any_moves() {
        return None; // No thread has entered one: usual, and saves the thread-local.
    }
    // A thread whose thread-locals are being destroyed counts as on no virtual clock.
    ENTERED.try_with(|entered| entered.borrow().last().cloned()).ok().flatten()
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Guards can be dropped in any order.
        let left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let at = entered.iter().rposition(|time| time.is_same(&self.time));
            at.map(|at| entered.remove(at))
        });
        // Drop `left` outside of the borrow: dropping the last clone of a clock can run user code.
        drop(left);
    }
}
