//! tokio's `Sleep`: a wheel behind one mutex per runtime, and wakers instead of callbacks.
//!
//! The runtimes here have time but no I/O, so waking a driver is no system call: the cheapest form.

use super::{CAUGHT_UP, Expire, Shared, Sleeper, Table, sleep_again_and_again};
use crate::latency::{Latencies, measured};
use crate::sample::Stopwatch;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// A current-thread runtime, in which no thread blocks while it is measured.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(conformance_peers::tasks::runtime);

/// The 112 bytes of the `Sleep` itself are on the heap.
pub type Handle = Pin<Box<Sleep>>;

/// With `READS_CLOCK`, each operation reads the clock, as a program does that handles one event.
pub struct Sleeps<const READS_CLOCK: bool> {
    begun: Instant,
    sleeps: Vec<Handle>,
}

impl<const READS_CLOCK: bool> Sleeps<READS_CLOCK> {
    fn now(&self) -> Instant {
        if READS_CLOCK { Instant::now() } else { self.begun }
    }
}

fn register(sleep: Pin<&mut Sleep>) {
    let polled = sleep.poll(&mut Context::from_waker(Waker::noop()));
    debug_assert!(polled.is_pending());
}

impl<const READS_CLOCK: bool> Default for Sleeps<READS_CLOCK> {
    fn default() -> Self {
        Sleeps { begun: Instant::now(), sleeps: Vec::new() }
    }
}

impl<const READS_CLOCK: bool> Table for Sleeps<READS_CLOCK> {
    fn runtime(&self) -> Option<tokio::runtime::Handle> {
        Some(RUNTIME.handle().clone())
    }

    fn settle(&mut self) {
        // The driver processes the new timers, as it does between two tasks.
        RUNTIME.block_on(async { sleep(Duration::from_millis(1)).await });
    }

    fn add(&mut self, after: Duration) {
        let mut sleep = Box::pin(sleep_until(self.begun + after));
        register(sleep.as_mut());
        self.sleeps.push(sleep);
    }

    fn pair(&mut self, after: Duration) {
        let sleep = std::pin::pin!(sleep_until(self.now() + after));
        register(sleep);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let now = self.now();
        let sleep = &mut self.sleeps[timer];
        sleep.as_mut().reset(now + after);
        register(sleep.as_mut());
    }

    fn pending(&mut self) -> usize {
        self.sleeps.iter().filter(|sleep| !sleep.is_elapsed()).count()
    }
}

pub struct TwoWorkers {
    runtime: Runtime,
    now: Instant,
}

impl Shared for TwoWorkers {
    type Timer = Pin<Box<Option<Sleep>>>;

    fn new() -> TwoWorkers {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
        TwoWorkers { runtime: runtime.expect("two threads"), now: Instant::now() }
    }

    fn around<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = self.runtime.enter();
        f()
    }

    fn timer(&self) -> Self::Timer {
        Box::pin(None)
    }

    fn arm(&self, timer: &mut Self::Timer, after: Duration) {
        timer.set(Some(sleep_until(self.now + after)));
        if let Some(sleep) = timer.as_mut().as_pin_mut() {
            register(sleep);
        }
    }

    fn cancel(&self, timer: &mut Self::Timer) {
        timer.set(None);
    }
}

pub const EXPIRE: Expire =
    Expire { name: "tokio `Sleep`, current thread", how: CAUGHT_UP, run: expire };

#[derive(Default)]
pub struct Count(pub AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn expire(after: &[Duration]) -> (u64, Duration) {
    let entered = RUNTIME.enter();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let base = Instant::now() + Duration::from_millis(2);
    let arm = |&after| {
        let mut sleep = Box::pin(sleep_until(base + after));
        assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        sleep
    };
    let sleeps: Vec<Pin<Box<Sleep>>> = after.iter().map(arm).collect();
    std::thread::sleep(
        (base + Duration::from_millis(1010)).saturating_duration_since(Instant::now()),
    );
    drop(entered);
    let watch = Stopwatch::start();
    RUNTIME.block_on(async { sleep(Duration::from_millis(1)).await });
    let took = watch.elapsed();
    drop(sleeps);
    (count.0.load(Ordering::Relaxed), took)
}

pub const SLEEPER: Sleeper = ("tokio `sleep_until`, 1 worker", run_sleepers);

fn run_sleepers(count: usize, run: Duration) -> Latencies {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let runtime = runtime.expect("one thread");
    let latencies = measured(run, |recorder| {
        for nth in 0..count {
            let recorder = Arc::clone(recorder);
            runtime.spawn(sleep_again_and_again(nth, recorder, |at| sleep_until(at.into())));
        }
    });
    runtime.shutdown_background();
    latencies
}
