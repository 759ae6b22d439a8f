//! tokio's `Sleep`: a wheel behind one mutex per runtime, and wakers instead of callbacks.
//!
//! The runtimes here have time but no I/O, so waking a driver is no system call: the cheapest form.
//!
//! With `enable_alt_timer` each worker has a wheel of its own, into which it puts timers, and from
//! which it removes those that were dropped, only between two tasks. So the work is done by tasks
//! there, which yield after each [`BETWEEN_YIELDS`] operations.

use super::executors::poll_once;
use super::{CAUGHT_UP, Expire, Shared, Sleeper, Table, sleep_again_and_again};
use crate::affinity;
use crate::latency::{Latencies, measured};
use crate::sample::{IS_TWIN, Stopwatch, of_tokio, wall_ns};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{unconstrained, yield_now};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// A current-thread runtime, in which no thread blocks while it is measured; or one worker in the
/// other build.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| match IS_TWIN {
    true => multi_thread(1).build().expect("one thread"),
    false => runtime(),
});

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime without I/O")
}

pub const NAME: &str = of_tokio!("tokio `Sleep`, one thread");

/// The most operations of a task between two looks of its worker at its timers.
const BETWEEN_YIELDS: usize = 64;

/// Returns a multi-thread runtime with time; in the other build, with the alternative timers.
pub fn multi_thread(workers: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).enable_time();
    #[cfg(tokio_unstable)]
    builder.enable_alt_timer();
    builder
}

/// Runs a future in [`RUNTIME`]: on the calling thread, or on the only worker.
fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let future = unconstrained(future);
    match IS_TWIN {
        true => RUNTIME.block_on(RUNTIME.spawn(future)).expect("its assertions hold"),
        false => RUNTIME.block_on(future),
    }
}

/// Does an operation with each duration, in a task on each of the workers of a runtime, which have
/// a CPU of their own as long as there are enough.
/// Returns the wall time of an operation of all tasks, in ns.
pub fn on_workers(
    workers: usize,
    runtime: &mut Builder,
    after: &[Duration],
    operation: impl Fn(Duration) + Copy + Send + Sync + 'static,
) -> f64 {
    let nth = AtomicUsize::new(0);
    let pin = move || affinity::pin(nth.fetch_add(1, Ordering::Relaxed));
    let runtime = runtime.on_thread_start(pin).build().expect("a runtime starts");
    let (after, here) = (Arc::<[Duration]>::from(after), Arc::new(AtomicUsize::new(0)));
    let task = |_| {
        let (after, here) = (Arc::clone(&after), Arc::clone(&here));
        runtime.spawn(unconstrained(async move {
            here.fetch_add(1, Ordering::Relaxed);
            while here.load(Ordering::Relaxed) < workers {
                std::thread::yield_now();
            }
            let began = std::time::Instant::now();
            for some in after.chunks(BETWEEN_YIELDS) {
                some.iter().for_each(|&after| operation(after));
                yield_now().await;
            }
            (began, std::time::Instant::now())
        }))
    };
    let tasks: Vec<_> = (0..workers).map(task).collect();
    // A worker can have taken two of them. Another one steals the second only when it is awake.
    while here.load(Ordering::Relaxed) < workers {
        runtime.spawn(async {});
        std::thread::sleep(Duration::from_millis(1));
    }
    let laps = tasks.into_iter().map(|task| runtime.block_on(task).expect("no panic"));
    wall_ns(laps.collect()) / (workers * after.len()) as f64
}

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

    fn each<T: Copy + Send + Sync + 'static>(
        &mut self,
        all: &[T],
        operation: impl Fn(&mut Self, T) + Send + 'static,
    ) {
        if !IS_TWIN {
            let _entered = RUNTIME.enter();
            return all.iter().for_each(|&one| operation(self, one));
        }
        let (mut this, all) = (std::mem::take(self), all.to_vec());
        *self = run(async move {
            for some in all.chunks(BETWEEN_YIELDS) {
                some.iter().for_each(|&one| operation(&mut this, one));
                yield_now().await;
            }
            this
        });
    }
}

impl<const READS_CLOCK: bool> Default for Sleeps<READS_CLOCK> {
    fn default() -> Self {
        Sleeps { begun: Instant::now(), sleeps: Vec::new() }
    }
}

impl<const READS_CLOCK: bool> Table for Sleeps<READS_CLOCK> {
    fn add_all(&mut self, after: &[Duration]) {
        self.each(after, Self::add);
        // The driver processes the new timers, as it does between two tasks.
        run(async { sleep(Duration::from_millis(1)).await });
    }

    fn pairs(&mut self, after: &[Duration]) {
        self.each(after, Self::pair);
    }

    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        self.each(plan, |this, (timer, after)| this.push_out(timer as usize, after));
    }

    fn add(&mut self, after: Duration) {
        let mut sleep = Box::pin(sleep_until(self.begun + after));
        poll_once(sleep.as_mut());
        self.sleeps.push(sleep);
    }

    fn pair(&mut self, after: Duration) {
        poll_once(pin!(sleep_until(self.now() + after)));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let now = self.now();
        let sleep = &mut self.sleeps[timer];
        sleep.as_mut().reset(now + after);
        poll_once(sleep.as_mut());
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
        let runtime = multi_thread(2).build().expect("two threads");
        TwoWorkers { runtime, now: Instant::now() }
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
            poll_once(sleep);
        }
    }

    fn cancel(&self, timer: &mut Self::Timer) {
        timer.set(None);
    }
}

pub const EXPIRE: Expire = Expire { name: NAME, how: CAUGHT_UP, run: expire };

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
    let after = after.to_vec();
    run(async move {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let base = Instant::now() + Duration::from_millis(2);
        let arm = |&after| {
            let mut sleep = Box::pin(sleep_until(base + after));
            assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
            sleep
        };
        let sleeps: Vec<Pin<Box<Sleep>>> = after.iter().map(arm).collect();
        let last = base + Duration::from_millis(1010);
        std::thread::sleep(last.saturating_duration_since(Instant::now()));
        let watch = Stopwatch::start();
        sleep(Duration::from_millis(1)).await;
        let took = watch.elapsed();
        drop(sleeps);
        (count.0.load(Ordering::Relaxed), took)
    })
}

pub const SLEEPER: Sleeper = (of_tokio!("tokio `sleep_until`, 1 worker"), run_sleepers);

fn run_sleepers(count: usize, run: Duration) -> Latencies {
    let runtime = multi_thread(1).build().expect("one thread");
    let latencies = measured(run, |recorder| {
        for nth in 0..count {
            let recorder = Arc::clone(recorder);
            runtime.spawn(sleep_again_and_again(nth, recorder, |at| sleep_until(at.into())));
        }
    });
    runtime.shutdown_background();
    latencies
}
