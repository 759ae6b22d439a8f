//! `tickless::Timeout` and `tickless::HrTimer`: any thread, a base and a driver per CPU.

use super::{Expire, LIVE, Shared, Sleeper, Table, wait_for};
use crate::latency::{Latencies, Recorder, measured, next_delay};
use crate::random::Random;
use crate::sample::{Stopwatch, process_time};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tickless::callback::{Cancel, Started};
use tickless::time::Instant;
use tickless::{Fired, Timeout, Timers, VirtualTime};

/// One set for the whole program, with a base for each CPU. Started before any thread is pinned.
pub static TIMERS: LazyLock<Timers> =
    LazyLock::new(|| Timers::builder().start().expect("driver threads can be started"));

/// Counts callbacks. Each count has a single driver, so no read-modify-write is needed.
static FIRED: AtomicU64 = AtomicU64::new(0);

fn count(_: &mut Fired<'_>) {
    FIRED.store(FIRED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

pub const FROM_NOW_NAME: &str = "**Timeout**, `start_from(now, d)`";

/// How a [`Timeouts`] uses its timers: the caller passes the current time, read once a batch.
pub const FROM_NOW: u8 = 0;
pub const READS_CLOCK: u8 = 1;
/// Each pair allocates its timer, and drops it instead of cancelling.
pub const THROWAWAY: u8 = 2;

pub struct Timeouts<const USE: u8> {
    now: Instant,
    timeouts: Vec<Timeout>,
    spare: Timeout,
}

impl<const USE: u8> Timeouts<USE> {
    fn start(&self, timeout: &Timeout, after: Duration) -> Option<Started> {
        if USE == READS_CLOCK {
            timeout.start(after).ok()
        } else {
            timeout.start_from(self.now, after).ok()
        }
    }
}

impl<const USE: u8> Default for Timeouts<USE> {
    fn default() -> Self {
        Timeouts { now: TIMERS.now(), timeouts: Vec::new(), spare: TIMERS.timeout(count) }
    }
}

impl<const USE: u8> Table for Timeouts<USE> {
    fn add(&mut self, after: Duration) {
        let timeout = TIMERS.timeout(count);
        timeout.start_from(self.now, after).expect("not shut down");
        self.timeouts.push(timeout);
    }

    fn pair(&mut self, after: Duration) {
        if USE == THROWAWAY {
            let armed = self.start(&TIMERS.timeout(count), after);
            debug_assert!(armed.is_some());
        } else {
            let armed = self.start(&self.spare, after);
            let cancelled = self.spare.cancel();
            debug_assert_eq!((armed.is_some(), cancelled), (true, Cancel::Pending));
        }
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let armed = self.start(&self.timeouts[timer], after);
        debug_assert_eq!(armed, Some(Started::Pending));
    }

    fn pending(&mut self) -> usize {
        self.timeouts.iter().filter(|timeout| timeout.is_pending()).count()
    }
}

/// For two threads. With `SYNC`, a cancel waits while the callback runs.
pub struct Anywhere<const SYNC: bool = false>(Instant);

impl<const SYNC: bool> Shared for Anywhere<SYNC> {
    type Timer = Box<Timeout>;

    fn new() -> Self {
        Anywhere(TIMERS.now())
    }

    fn timer(&self) -> Box<Timeout> {
        Box::new(TIMERS.timeout(count))
    }

    fn arm(&self, timer: &mut Box<Timeout>, after: Duration) {
        let armed = timer.start_from(self.0, after);
        debug_assert!(armed.is_ok());
    }

    fn cancel(&self, timer: &mut Box<Timeout>) {
        if SYNC {
            let cancelled = timer.cancel_sync();
            debug_assert!(cancelled.is_ok());
        } else {
            let cancelled = timer.cancel();
            debug_assert_eq!(cancelled, Cancel::Pending);
        }
    }
}

pub const EXPIRE_VIRTUAL: Expire = Expire {
    name: "**Timeout**, by hand",
    how: "VirtualTime from expiry to expiry, one thread",
    run: expire_virtual,
};

fn expire_virtual(after: &[Duration]) -> (u64, Duration) {
    let time = VirtualTime::with_builder(
        Timers::builder().bases(1).coarse_like_real(),
        Instant::from_secs(1),
    );
    let now = time.now();
    let timeout = |&after| {
        let timeout = time.timers().timeout(count);
        timeout.start_from(now, after).expect("not shut down");
        timeout
    };
    let timeouts: Vec<Timeout> = after.iter().map(timeout).collect();
    let before = FIRED.load(Ordering::Relaxed);
    let watch = Stopwatch::start();
    time.advance(Duration::from_secs(2));
    let took = watch.elapsed();
    drop(timeouts);
    (FIRED.load(Ordering::Relaxed) - before, took)
}

pub const EXPIRE_LIVE: Expire =
    Expire { name: "**Timeout**, by its driver", how: LIVE, run: expire_live };

fn expire_live(after: &[Duration]) -> (u64, Duration) {
    let timers = Timers::builder().bases(1).start().expect("one driver can be started");
    let timeouts: Vec<Timeout> = after.iter().map(|_| timers.timeout(count)).collect();
    // Late enough to arm all before the first is due, even on a slow machine.
    let base = timers.now() + Duration::from_millis(2) * (1 + after.len() as u32 / 1000);
    let before = FIRED.load(Ordering::Relaxed);
    for (timeout, &after) in timeouts.iter().zip(after) {
        timeout.start_at(base + after).expect("not shut down");
    }
    let cpu = process_time();
    std::thread::sleep(base - timers.now());
    wait_for(after.len() as u64, || FIRED.load(Ordering::Relaxed) - before);
    let took = process_time().saturating_sub(cpu);
    (FIRED.load(Ordering::Relaxed) - before, took)
}

pub const PRECISE: Sleeper = ("**HrTimer**, no slack", |n, run| hrtimers(n, run, Duration::ZERO));
pub const SLACK: Sleeper =
    ("**HrTimer**, 1 ms slack", |n, run| hrtimers(n, run, Duration::from_millis(1)));
pub const COARSE: Sleeper = ("**Timeout**, 1 ms tick", timeouts);

struct TimeoutLoad {
    due: std::time::Instant,
    random: Random,
    recorder: Arc<Mutex<Recorder>>,
}

impl TimeoutLoad {
    fn new(nth: usize, recorder: &Arc<Mutex<Recorder>>) -> TimeoutLoad {
        let random = Random::seeded(nth as u64);
        TimeoutLoad { due: std::time::Instant::now(), random, recorder: Arc::clone(recorder) }
    }

    /// Records the lateness of this expiry. Returns the next delay.
    fn note(&mut self) -> Duration {
        let now = std::time::Instant::now();
        self.recorder.lock().expect("no callback panics").note(self.due, now);
        let delay = next_delay(&mut self.random);
        self.due = now + delay;
        delay
    }
}

/// Runs timers that `make` makes and starts after a delay, on a set of one base.
fn sleepers<T>(
    count: usize,
    run: Duration,
    make: impl Fn(&Timers, TimeoutLoad, Duration) -> T,
) -> Latencies {
    let timers = Timers::builder().bases(1).start().expect("one driver can be started");
    let all = |recorder: &Arc<Mutex<Recorder>>| -> Vec<T> {
        let after = |nth| Duration::from_micros(nth as u64);
        (0..count).map(|nth| make(&timers, TimeoutLoad::new(nth, recorder), after(nth))).collect()
    };
    measured(run, all)
}

fn hrtimers(count: usize, run: Duration, slack: Duration) -> Latencies {
    sleepers(count, run, |timers, mut state, after| {
        let timer = timers.hrtimer(move |fired| {
            // In this order: a deadline that was noted after the clock was read would seem early.
            let delay = state.note();
            let soft = fired.now() + delay;
            fired.restart_range(soft, soft + slack);
        });
        timer.start(after).expect("not shut down");
        timer
    })
}

fn timeouts(count: usize, run: Duration) -> Latencies {
    sleepers(count, run, |timers, mut state, after| {
        let timer = timers.timeout(move |fired| {
            let delay = state.note();
            fired.restart(delay);
        });
        timer.start(after).expect("not shut down");
        timer
    })
}
