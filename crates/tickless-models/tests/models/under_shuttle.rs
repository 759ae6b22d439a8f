//! Shuttle: random schedules of sequentially consistent threads.

use super::checker::{Checker, Depth, Parking};
use std::cell::Cell;
use std::env;
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::CpuId;

/// The checker for depth.
pub struct Shuttle;

/// A word under shuttle.
pub struct ShuttleWord(shuttle::sync::atomic::AtomicU64);

/// A mutex under shuttle.
pub struct ShuttleLock<T>(shuttle::sync::Mutex<T>);

shuttle::thread_local! {
    static SHUTTLE_HERE: Cell<u16> = Cell::new(0);
}

/// The seed of the first random schedule; the run's own, or that of the run to see again.
fn seed() -> u64 {
    let seed = env::var("TICKLESS_SEED").ok();
    let seed = seed.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    seed.unwrap_or(0x7169_636b)
}

impl Checker for Shuttle {
    const NAME: &'static str = "shuttle";
    const IS_RANDOM: bool = true;
    type Word = ShuttleWord;
    type Lock<T: Send> = ShuttleLock<T>;
    type Parking = ShuttleParking;
    type Thread = shuttle::thread::JoinHandle<()>;

    /// Half of the schedules switch at random, half at a few random points between threads of
    /// random priority, which finds what needs one thread to stand still for long (Burckhardt,
    /// Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees
    /// of Finding Bugs", 2010).
    fn explore(depth: Depth, body: impl Fn() + Send + Sync + 'static) {
        use shuttle::scheduler::{PctScheduler, RandomScheduler};
        let (body, half) = (Arc::new(body), depth.schedules.div_ceil(2));
        let mut config = shuttle::Config::new();
        config.silence_warnings = true;
        let again = Arc::clone(&body);
        let random = RandomScheduler::new_from_seed(seed(), half);
        shuttle::Runner::new(random, config.clone()).run(move || again());
        let few = PctScheduler::new_from_seed(seed(), 4, half);
        shuttle::Runner::new(few, config).run(move || body());
    }

    fn spawn(cpu: CpuId, thread: impl FnOnce() + Send + 'static) -> Self::Thread {
        shuttle::thread::spawn(move || {
            Shuttle::go_to(cpu);
            thread();
        })
    }

    fn join(thread: Self::Thread) {
        thread.join().expect("a thread that fails ends the model");
    }

    fn swap(word: &Self::Word, value: u64, order: Ordering) -> u64 {
        word.0.swap(value, order)
    }

    fn add_one(word: &Self::Word, order: Ordering) {
        word.0.fetch_add(1, order);
    }

    fn yield_now() {
        shuttle::thread::yield_now();
    }

    fn fence() {
        shuttle::sync::atomic::fence(Ordering::SeqCst);
    }

    fn here() -> CpuId {
        CpuId(SHUTTLE_HERE.with(Cell::get))
    }

    fn go_to(cpu: CpuId) {
        SHUTTLE_HERE.with(|here| here.set(cpu.0));
    }
}

impl Word for ShuttleWord {
    fn new(value: u64) -> Self {
        ShuttleWord(shuttle::sync::atomic::AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl<T: Send> Lock<T> for ShuttleLock<T> {
    type Guard<'a>
        = shuttle::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        ShuttleLock(shuttle::sync::Mutex::new(value))
    }

    fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().expect("shuttle's mutex is not poisoned")
    }
}

/// A mutex and a condition variable under shuttle.
pub struct ShuttleParking(shuttle::sync::Mutex<()>, shuttle::sync::Condvar);

impl Parking for ShuttleParking {
    fn new() -> Self {
        ShuttleParking(shuttle::sync::Mutex::new(()), shuttle::sync::Condvar::new())
    }

    fn park(&self, still: impl FnOnce() -> bool) {
        let guard = self.0.lock().expect("shuttle's mutex is not poisoned");
        if still() {
            drop(self.1.wait(guard).expect("shuttle's mutex is not poisoned"));
        }
    }

    fn unpark(&self) {
        let guard = self.0.lock().expect("shuttle's mutex is not poisoned");
        self.1.notify_all();
        drop(guard);
    }
}
