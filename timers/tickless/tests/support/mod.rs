//! Shared by several test files: random numbers, timeouts, and places where callbacks find timers.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this")]

pub mod any_timer;
pub mod child;
pub mod histories;
pub mod rig;
pub mod woken;

pub use any_timer::AnyTimer;
pub use child::child_test;
pub use histories::{PATIENCE, Rng, seed, wait_until};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless::Timers;

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_secs(3600);

/// Returns `count`, or a few under Miri, which is a thousand times slower and detects more.
pub fn rounds(count: u64) -> u64 {
    if cfg!(miri) { 3 } else { count }
}

/// Starts timers with this many bases.
pub fn bases(count: u16) -> Timers {
    Timers::builder().bases(count).start().expect("a few threads can be started")
}

/// Returns the names of the threads of this process. Linux only.
pub fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(task.ok()?.path().join("comm")).ok()?;
        Some(name.trim().to_owned())
    };
    tasks.filter_map(name).collect()
}

/// Returns the CPU time of the calling thread.
pub fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns a count of zero for a test, and a second reference to it for a callback.
pub fn shared_count() -> (Arc<AtomicU64>, Arc<AtomicU64>) {
    let count = Arc::<AtomicU64>::default();
    (Arc::clone(&count), count)
}

/// Like [`shared_count`], for a flag that is not set.
pub fn shared_flag() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let flag = Arc::<AtomicBool>::default();
    (Arc::clone(&flag), flag)
}

/// A shared place for a value that is set later, or taken: mostly a timer that callbacks find.
pub struct Place<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        Place(Arc::clone(&self.0))
    }
}

impl<T> Place<T> {
    pub fn empty() -> Place<T> {
        Place(Arc::new(Mutex::new(None)))
    }

    /// Returns an empty place for a test, and a second handle to it for a callback.
    pub fn shared() -> (Place<T>, Place<T>) {
        let place = Place::empty();
        (place.clone(), place)
    }

    pub fn put(&self, value: T) {
        *self.lock() = Some(value);
    }

    /// Takes the value out and unlocks the place before the caller drops the value.
    pub fn take(&self) -> Option<T> {
        self.lock().take()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_none()
    }

    pub fn with<R>(&self, use_it: impl FnOnce(&T) -> R) -> R {
        use_it(self.lock().as_ref().expect("something has been put here"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds a callback until the test opens the gate. The test can wait until a callback is inside.
#[derive(Clone, Default)]
pub struct Gate(Arc<[AtomicBool; 2]>);

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Returns a gate for a test, and a second handle to it for a callback.
    pub fn shared() -> (Gate, Gate) {
        let gate = Gate::new();
        (gate.clone(), gate)
    }

    /// Waits until the gate is open, in a callback.
    pub fn pass(&self) {
        let [inside, open] = &*self.0;
        inside.store(true, Ordering::SeqCst);
        wait_until("the gate opens", || open.load(Ordering::SeqCst));
        inside.store(false, Ordering::SeqCst);
    }

    pub fn wait_inside(&self) {
        wait_until("a callback is inside", || self.0[0].load(Ordering::SeqCst));
    }

    pub fn open(&self) {
        self.0[1].store(true, Ordering::SeqCst);
    }
}

/// A list to which callbacks write, and which the test reads.
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Arc::clone(&self.0))
    }
}

impl<T> Log<T> {
    pub fn new() -> Log<T> {
        Log(Arc::new(Mutex::new(Vec::new())))
    }

    /// Returns an empty list for a test, and a second handle to it for a callback.
    pub fn shared() -> (Log<T>, Log<T>) {
        let log = Log::new();
        (log.clone(), log)
    }

    pub fn push(&self, entry: T) {
        self.lock().push(entry);
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Takes the entries written since the previous call.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
