//! `tickless::Timeout` and `tickless::HrTimer`: any thread, a base and a driver per CPU.

use super::{Expire, LIVE, Shared, Sleeper, Table, wait_for};
use crate::latency::{Latencies, Recorder, Watch, next_delay};
use crate::random::Random;
use crate::sample::{Stopwatch, process_time};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tickless::time::Instant;
use tickless::{Fired, HrTimer, Timeout, Timers, VirtualTime};

const PRECISE_SLACK: Duration = Duration::ZERO;
const WIDE_SLACK: Duration = Duration::from_millis(1);

/// One set for the whole program, with a base for each CPU. Made before anything is pinned.
pub static TIMERS: LazyLock<Timers> =
    LazyLock::new(|| Timers::builder().start().expect("driver threads can be started"));

/// What callbacks count in: single drivers, so no read-modify-write is needed.
static FIRED: AtomicU64 = AtomicU64::new(0);

fn count(_: &mut Fired<'_>) {
    FIRED.store(FIRED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Takes its present as an argument, as a server that reads the clock once per batch does.
pub struct FromNow {
    now: Instant,
    timeouts: Vec<Timeout>,
    spare: Timeout,
}

impl Table for FromNow {
    const NAME: &'static str = "**Timeout**, `start_from(now, d)`";

    fn new() -> FromNow {
        FromNow { now: TIMERS.now(), timeouts: Vec::new(), spare: TIMERS.timeout(count) }
    }

    fn add(&mut self, after: Duration) {
        let timeout = TIMERS.timeout(count);
        timeout.start_from(self.now, after).expect("not shut down");
        self.timeouts.push(timeout);
    }

    fn pair(&mut self, after: Duration) {
        let armed = self.spare.start_from(self.now, after);
        let cancelled = self.spare.cancel();
        debug_assert_eq!((armed.is_ok(), cancelled), (true, tickless::callback::Cancel::Pending));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let armed = self.timeouts[timer].start_from(self.now, after);
        debug_assert_eq!(armed, Ok(tickless::callback::Started::Pending));
    }

    fn pending(&mut self) -> usize {
        self.timeouts.iter().filter(|timeout| timeout.is_pending()).count()
    }

    fn handle_bytes() -> usize {
        size_of::<Timeout>()
    }
}

/// Reads the clock with every arming.
pub struct ReadsClock(FromNow);

impl Table for ReadsClock {
    const NAME: &'static str = "**Timeout**, `start(d)`, reads the clock";

    fn new() -> ReadsClock {
        ReadsClock(FromNow::new())
    }

    fn add(&mut self, after: Duration) {
        self.0.add(after);
    }

    fn pair(&mut self, after: Duration) {
        let armed = self.0.spare.start(after);
        let cancelled = self.0.spare.cancel();
        debug_assert_eq!((armed.is_ok(), cancelled), (true, tickless::callback::Cancel::Pending));
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        let armed = self.0.timeouts[timer].start(after);
        debug_assert_eq!(armed, Ok(tickless::callback::Started::Pending));
    }

    fn pending(&mut self) -> usize {
        Table::pending(&mut self.0)
    }

    fn handle_bytes() -> usize {
        FromNow::handle_bytes()
    }
}

/// Each pair allocates its timer, and frees it instead of cancelling.
pub struct Throwaway(FromNow);

impl Table for Throwaway {
    const NAME: &'static str = "**Timeout**, made and dropped";

    fn new() -> Throwaway {
        Throwaway(FromNow::new())
    }

    fn add(&mut self, after: Duration) {
        self.0.add(after);
    }

    fn pair(&mut self, after: Duration) {
        let timeout = TIMERS.timeout(count);
        let armed = timeout.start_from(self.0.now, after);
        debug_assert!(armed.is_ok());
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.0.push_out(timer, after);
    }

    fn pending(&mut self) -> usize {
        Table::pending(&mut self.0)
    }

    fn handle_bytes() -> usize {
        FromNow::handle_bytes()
    }
}

/// For two threads.
pub struct Anywhere(Instant);

impl Shared for Anywhere {
    const NAME: &'static str = FromNow::NAME;
    type Timer = Box<Timeout>;

    fn new() -> Anywhere {
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
        let cancelled = timer.cancel();
        debug_assert_eq!(cancelled, tickless::callback::Cancel::Pending);
    }
}

/// For two threads, with a cancel that waits while the callback runs.
pub struct CancelSync(Anywhere);

impl Shared for CancelSync {
    const NAME: &'static str = "**Timeout**, `cancel_sync` waits";
    type Timer = Box<Timeout>;

    fn new() -> CancelSync {
        CancelSync(Anywhere::new())
    }

    fn timer(&self) -> Box<Timeout> {
        self.0.timer()
    }

    fn arm(&self, timer: &mut Box<Timeout>, after: Duration) {
        self.0.arm(timer, after);
    }

    fn cancel(&self, timer: &mut Box<Timeout>) {
        let cancelled = timer.cancel_sync();
        debug_assert!(cancelled.is_ok());
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
    // Far enough for all to be armed before the first is due, even on a slow machine.
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

pub const PRECISE: Sleeper =
    Sleeper { name: "**HrTimer**, no slack", run: |n, d| hrtimers(n, d, PRECISE_SLACK) };
pub const SLACK: Sleeper =
    Sleeper { name: "**HrTimer**, 1 ms slack", run: |n, d| hrtimers(n, d, WIDE_SLACK) };
pub const COARSE: Sleeper = Sleeper { name: "**Timeout**, 1 ms tick", run: timeouts };

/// What a callback keeps.
struct State {
    due: std::time::Instant,
    random: Random,
    recorder: Arc<Mutex<Recorder>>,
}

impl State {
    fn new(nth: usize, recorder: &Arc<Mutex<Recorder>>) -> State {
        let random = Random::seeded(nth as u64);
        State { due: std::time::Instant::now(), random, recorder: Arc::clone(recorder) }
    }

    /// Notes how late this expiry is. Returns the next delay.
    fn note(&mut self) -> Duration {
        let now = std::time::Instant::now();
        self.recorder.lock().expect("no callback panics").note(self.due, now);
        let delay = next_delay(&mut self.random);
        self.due = now + delay;
        delay
    }
}

fn hrtimers(count: usize, run: Duration, slack: Duration) -> Latencies {
    let timers = Timers::builder().bases(1).start().expect("one driver can be started");
    let recorder = Recorder::shared();
    let timers: Vec<HrTimer> = (0..count)
        .map(|nth| {
            let mut state = State::new(nth, &recorder);
            let timer = timers.hrtimer(move |fired| {
                let after = state.note();
                let soft = fired.now() + after;
                fired.restart_range(soft, soft + slack);
            });
            timer.start(Duration::from_micros(nth as u64)).expect("not shut down");
            timer
        })
        .collect();
    let watch = Watch::warmed_up(&recorder);
    std::thread::sleep(run);
    let latencies = watch.finish(&recorder);
    drop(timers);
    latencies
}

fn timeouts(count: usize, run: Duration) -> Latencies {
    let timers = Timers::builder().bases(1).start().expect("one driver can be started");
    let recorder = Recorder::shared();
    let timers: Vec<Timeout> = (0..count)
        .map(|nth| {
            let mut state = State::new(nth, &recorder);
            let timer = timers.timeout(move |fired| {
                let after = state.note();
                fired.restart(after);
            });
            timer.start(Duration::from_micros(nth as u64)).expect("not shut down");
            timer
        })
        .collect();
    let watch = Watch::warmed_up(&recorder);
    std::thread::sleep(run);
    let latencies = watch.finish(&recorder);
    drop(timers);
    latencies
}
