//! Loom: every schedule up to so many preemptions, and every value that a load may return.

use super::checker::{Checker, Depth, Parking};
use loom::sync::atomic::AtomicU64;
use std::cell::Cell;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::CpuId;

/// The checker for orderings.
pub struct Loom;

/// A word under loom. Whoever drops one must come after everybody who used it.
pub struct LoomWord {
    word: AtomicU64,
    /// Touched before every use of the word. Of the uses of an atomic, loom 0.7 remembers the last
    /// alone when it looks for schedules to explore: a thread that loads a word and then writes it
    /// hides the load that another did before. Writes hide nothing, since each depends on each.
    turns: AtomicU64,
}

/// A mutex under loom.
pub struct LoomLock<T>(loom::sync::Mutex<T>);

loom::thread_local! {
    static LOOM_HERE: Cell<u16> = Cell::new(0);
}

impl Checker for Loom {
    const NAME: &'static str = "loom";
    const IS_RANDOM: bool = false;
    type Word = LoomWord;
    type Lock<T: Send> = LoomLock<T>;
    type Parking = LoomParking;
    type Thread = loom::thread::JoinHandle<()>;

    fn explore(depth: Depth, body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(depth.preemptions));
        builder.max_branches = builder.max_branches.max(10_000);
        builder.check(body);
    }

    fn spawn(cpu: CpuId, thread: impl FnOnce() + Send + 'static) -> Self::Thread {
        loom::thread::spawn(move || {
            Loom::go_to(cpu);
            thread();
        })
    }

    fn join(thread: Self::Thread) {
        thread.join().expect("a thread that fails ends the model");
    }

    fn swap(word: &Self::Word, value: u64, order: Ordering) -> u64 {
        word.turn().swap(value, order)
    }

    fn add_one(word: &Self::Word, order: Ordering) {
        word.turn().fetch_add(1, order);
    }

    fn yield_now() {
        loom::thread::yield_now();
    }

    fn fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

    fn here() -> CpuId {
        CpuId(LOOM_HERE.with(Cell::get))
    }

    fn go_to(cpu: CpuId) {
        LOOM_HERE.with(|here| here.set(cpu.0));
    }
}

impl Word for LoomWord {
    fn new(value: u64) -> Self {
        LoomWord { word: AtomicU64::new(value), turns: AtomicU64::new(0) }
    }

    fn load(&self, order: Ordering) -> u64 {
        self.turn().load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.turn().store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.turn().compare_exchange(current, new, success, failure)
    }
}

impl LoomWord {
    fn turn(&self) -> &AtomicU64 {
        // Relaxed: orders nothing for the code under test.
        self.turns.fetch_add(1, Ordering::Relaxed);
        &self.word
    }
}

impl Drop for LoomWord {
    /// Loom fails here if some use of the word did not happen before: the memory is about to be
    /// used for something else.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.word.with_mut(|_| ());
        }
    }
}

impl<T: Send> Lock<T> for LoomLock<T> {
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        LoomLock(loom::sync::Mutex::new(value))
    }

    fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("loom's mutex is not poisoned")
    }
}

/// A mutex and a condition variable under loom.
pub struct LoomParking(loom::sync::Mutex<()>, loom::sync::Condvar);

impl Parking for LoomParking {
    fn new() -> Self {
        LoomParking(loom::sync::Mutex::new(()), loom::sync::Condvar::new())
    }

    fn park(&self, still: impl FnOnce() -> bool) {
        let guard = self.0.lock().expect("loom's mutex is not poisoned");
        if still() {
            drop(self.1.wait(guard).expect("loom's mutex is not poisoned"));
        }
    }

    fn unpark(&self) {
        let guard = self.0.lock().expect("loom's mutex is not poisoned");
        self.1.notify_all();
        drop(guard);
    }
}
