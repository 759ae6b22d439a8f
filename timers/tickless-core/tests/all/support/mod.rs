//! A deterministic platform for bases: a clock that tests set, and CPUs with a one-shot event
//! device each.
//!
//! It checks that the bases use a platform correctly: one base's lock at a time, devices programmed
//! under the lock, and every requested kick made without it. A test can be called before every lock
//! and after every write of a word, where another CPU's operation may take effect.

pub mod history;
#[path = "../../../../tickless/tests/support/histories.rs"]
pub mod random;
pub mod rules;
pub mod scene;
pub mod timers;
pub mod twin;

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::platform::{Lock, Ordering, ParkingWord, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// How far each level of the wheel reaches, in ticks, from the table in its documentation.
pub const REACHES: [u64; 9] =
    [63, 497, 3_972, 31_776, 254_201, 2_033_602, 16_268_816, 130_150_525, 1_040_187_392];

/// Relaxed: the platform's own state must not order anything for the code under test.
const RELAXED: Ordering = Ordering::Relaxed;

pub struct TestPlatform {
    clock: AtomicU64,
    reads: AtomicU64,
    /// The number of threads that have parked until a callback has ended.
    parked: AtomicU64,
    devices: Box<[EventDevice]>,
}

struct EventDevice {
    armed: AtomicU64,
    written_at: AtomicU64,
    writes: AtomicU64,
    /// Whether a kick was requested and has not been made.
    owed: AtomicBool,
}

type Watcher = Rc<dyn Fn(Moment)>;

thread_local! {
    static HERE: Cell<u16> = const { Cell::new(0) };
    static HELD: Cell<u32> = const { Cell::new(0) };
    static LOADS: Cell<u64> = const { Cell::new(0) };
    /// How often another thread was let in, while one wants every lock.
    static LET_IN: Cell<Option<u64>> = const { Cell::new(None) };
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// When a watcher is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A lock is about to be taken.
    Locking,
    /// A word has just been written.
    Wrote(u64),
}

/// Calls a function at every [`Moment`] of this thread until dropped.
pub struct Watch(());

impl Watch {
    pub fn with(watcher: Rc<dyn Fn(Moment)>) -> Watch {
        WATCHER.set(Some(watcher));
        Watch(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHER.set(None);
    }
}

/// Calls `act` whenever a lock is about to be taken `within`, with the number of locks so far.
/// Returns how often that was.
pub fn before_each_lock(act: impl Fn(usize) + 'static, within: impl FnOnce()) -> usize {
    let (locks, acting) = (Rc::new(Cell::new(0)), Cell::new(false));
    let count = Rc::clone(&locks);
    let watch = Watch::with(Rc::new(move |moment| {
        if moment == Moment::Locking && !acting.replace(true) {
            count.set(count.get() + 1);
            act(count.get());
            acting.set(false);
        }
    }));
    within();
    drop(watch);
    locks.get()
}

fn moment(moment: Moment) {
    let watcher = WATCHER.with(|watcher| watcher.borrow().clone());
    if let Some(watcher) = watcher {
        watcher(moment);
    }
}

pub fn on<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
    let before = HERE.replace(cpu.0);
    let result = f();
    HERE.set(before);
    result
}

/// Moves this thread to another CPU.
pub fn go_to(cpu: CpuId) {
    HERE.set(cpu.0);
}

/// Returns how many words this thread has read.
pub fn loads() -> u64 {
    LOADS.get()
}

/// Makes each lock of this thread wanted by another during `f`. Returns how often that was let in.
pub fn while_locks_are_wanted(f: impl FnOnce()) -> u64 {
    LET_IN.set(Some(0));
    f();
    LET_IN.take().unwrap_or(0)
}

pub fn assert_unlocked() {
    assert_eq!(HELD.get(), 0, "called under a base's lock");
}

impl TestPlatform {
    pub fn new(cpus: u16, now: Ns) -> TestPlatform {
        let device = |_| EventDevice {
            armed: AtomicU64::new(Ns::NEVER.0),
            written_at: AtomicU64::new(now.0),
            writes: AtomicU64::new(0),
            owed: AtomicBool::new(false),
        };
        let devices = (0..cpus).map(device).collect();
        let (clock, zero) = (AtomicU64::new(now.0), || AtomicU64::new(0));
        TestPlatform { clock, reads: zero(), parked: zero(), devices }
    }

    /// Returns the clock's time, without counting a reading.
    pub fn time(&self) -> Ns {
        Ns(self.clock.load(RELAXED))
    }

    /// Returns how often the code under test has read the clock.
    pub fn reads(&self) -> u64 {
        self.reads.load(RELAXED)
    }

    pub fn parked(&self) -> u64 {
        self.parked.load(RELAXED)
    }

    /// Moves the clock, never back.
    pub fn set_time(&self, to: Ns) {
        self.clock.fetch_max(to.0, RELAXED);
    }

    /// Returns when a CPU's device will deliver its event; [`Ns::NEVER`] if it will not.
    pub fn armed(&self, cpu: CpuId) -> Ns {
        Ns(self.device(cpu).armed.load(RELAXED))
    }

    pub fn writes(&self, cpu: CpuId) -> u64 {
        self.device(cpu).writes.load(RELAXED)
    }

    pub fn written_at(&self, cpu: CpuId) -> Ns {
        Ns(self.device(cpu).written_at.load(RELAXED))
    }

    /// Disarms a CPU's device, because it delivers its event.
    pub fn deliver(&self, cpu: CpuId) {
        self.device(cpu).armed.store(Ns::NEVER.0, RELAXED);
    }

    /// Fails if a kick was requested and not made.
    pub fn assert_all_kicked(&self) {
        let owed = self.devices.iter().position(|device| device.owed.load(RELAXED));
        assert_eq!(owed, None, "the kick of this CPU was not made");
    }

    fn device(&self, cpu: CpuId) -> &EventDevice {
        &self.devices[cpu.index()]
    }
}

// SAFETY: words are atomics and the lock is a mutex. The functions that are called under a lock
// unwind only to fail a test.
unsafe impl Platform for TestPlatform {
    type Word = WatchedWord;
    type ParkingWord = WatchedWord;
    type Lock<T: Send> = WatchedLock<T>;
    /// The timer's number in its test.
    type Task = usize;

    fn now(&self) -> Ns {
        self.reads.fetch_add(1, RELAXED);
        self.time()
    }

    fn here(&self) -> CpuId {
        CpuId(HERE.get())
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        assert_eq!(HELD.get(), 1, "a device is programmed under its base's lock");
        let device = self.device(cpu);
        device.armed.store(at.0, RELAXED);
        device.written_at.store(self.clock.load(RELAXED), RELAXED);
        device.writes.fetch_add(1, RELAXED);
        device.owed.store(true, RELAXED);
        Rearm::Kick(cpu)
    }

    fn kick(&self, cpu: CpuId) {
        assert_unlocked();
        self.device(cpu).owed.store(false, RELAXED);
    }

    fn relax(&self, round: u32) {
        assert!(round < 1_000_000, "waits too long");
        // Most tests have one thread, and a busy machine is slow to return a CPU.
        if round > 0 {
            std::thread::yield_now();
        }
    }

    fn park(&self, word: &WatchedWord, value: u32) {
        assert_unlocked();
        self.parked.fetch_add(1, RELAXED);
        for _ in 0..1_000_000 {
            if word.count(Ordering::Acquire) != value {
                return;
            }
            std::thread::yield_now();
        }
        panic!("parked too long");
    }

    fn unpark(&self, _: &WatchedWord) {
        assert_unlocked();
    }
}

/// A word of real memory that reports when it is written.
pub struct WatchedWord(AtomicU64);

impl Word for WatchedWord {
    fn new(value: u64) -> Self {
        WatchedWord(AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        LOADS.set(LOADS.get() + 1);
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
        moment(Moment::Wrote(value));
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let result = self.0.compare_exchange(current, new, success, failure);
        if result.is_ok() {
            moment(Moment::Wrote(new));
        }
        result
    }
}

/// A mutex that reports when it is about to be taken, and fails if its thread holds another one.
pub struct WatchedLock<T>(Mutex<T>);

pub struct WatchedGuard<'a, T>(MutexGuard<'a, T>);

impl<T: Send> Lock<T> for WatchedLock<T> {
    type Guard<'a>
        = WatchedGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        WatchedLock(Mutex::new(value))
    }

    fn lock(&self) -> WatchedGuard<'_, T> {
        assert_eq!(HELD.get(), 0, "the thread holds a base's lock already");
        moment(Moment::Locking);
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        HELD.set(1);
        WatchedGuard(guard)
    }

    fn is_wanted(&self) -> bool {
        LET_IN.get().is_some()
    }

    fn yield_to_waiters(&self) {
        assert_unlocked();
        LET_IN.set(LET_IN.get().map(|count| count + 1));
    }
}

impl<T> Drop for WatchedGuard<'_, T> {
    fn drop(&mut self) {
        HELD.set(0);
    }
}

impl<T> Deref for WatchedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for WatchedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
