//! async-io's `Timer`: a B-tree behind a mutex, a queue of operations before it, and a thread
//! that drives them when no executor does.

use super::{Expire, LIVE, Shared, Sleeper, Table, wait_for};
use crate::latency::{Recorder, measured_in_thread, next_delay};
use crate::peers::tokio_sleep::Count;
use crate::random::Random;
use crate::sample::process_time;
use async_io::Timer;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Starts its thread, which must not be pinned to a CPU that is measured.
pub fn warm_up() {
    register(&mut Timer::after(Duration::from_millis(1)), Waker::noop());
}

fn register(timer: &mut Timer, waker: &Waker) -> bool {
    Pin::new(timer).poll(&mut Context::from_waker(waker)).is_pending()
}

pub const NAME: &str = "async-io `Timer`";

pub struct AsyncIo {
    now: Instant,
    timers: Vec<Timer>,
}

impl Default for AsyncIo {
    fn default() -> AsyncIo {
        AsyncIo { now: Instant::now(), timers: Vec::new() }
    }
}

impl Table for AsyncIo {
    fn add(&mut self, after: Duration) {
        let mut timer = Timer::at(self.now + after);
        register(&mut timer, Waker::noop());
        self.timers.push(timer);
    }

    fn pair(&mut self, after: Duration) {
        register(&mut Timer::at(self.now + after), Waker::noop());
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.timers[timer].set_at(self.now + after);
    }

    fn pending(&mut self) -> usize {
        let soon = Instant::now();
        self.timers.iter().filter(|timer| timer.will_fire() && self.now < soon).count()
    }
}

pub struct Anywhere(Instant);

impl Shared for Anywhere {
    const NAME: &'static str = NAME;
    type Timer = Box<Option<Timer>>;

    fn new() -> Anywhere {
        Anywhere(Instant::now())
    }

    fn timer(&self) -> Box<Option<Timer>> {
        Box::new(None)
    }

    fn arm(&self, timer: &mut Box<Option<Timer>>, after: Duration) {
        register(timer.insert(Timer::at(self.0 + after)), Waker::noop());
    }

    fn cancel(&self, timer: &mut Box<Option<Timer>>) {
        **timer = None;
    }
}

pub const EXPIRE: Expire = Expire { name: NAME, how: LIVE, run: expire };

fn expire(after: &[Duration]) -> (u64, Duration) {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    // Late enough to arm all before the first is due, even on a slow machine.
    let base = Instant::now() + Duration::from_millis(4) * (1 + after.len() as u32 / 1000);
    let mut timers: Vec<Timer> = after.iter().map(|&after| Timer::at(base + after)).collect();
    let late: u64 = timers.iter_mut().map(|timer| u64::from(!register(timer, &waker))).sum();
    std::thread::sleep(base.saturating_duration_since(Instant::now()));
    let cpu = process_time();
    wait_for(after.len() as u64 - late, || count.0.load(Ordering::Relaxed));
    let took = process_time().saturating_sub(cpu);
    drop(timers);
    (count.0.load(Ordering::Relaxed) + late, took)
}

pub const SLEEPER: Sleeper =
    ("async-io `Timer`, 1 thread", |count, run| measured_in_thread(count, run, drive));

fn drive(count: usize, recorder: &Arc<Mutex<Recorder>>, stop: &AtomicBool) {
    let executor = async_executor::LocalExecutor::new();
    for nth in 0..count {
        let recorder = Arc::clone(recorder);
        let mut random = Random::seeded(nth as u64);
        let task = executor.spawn(async move {
            loop {
                let due = Instant::now() + next_delay(&mut random);
                Timer::at(due).await;
                recorder.lock().expect("no task panics").note(due, Instant::now());
            }
        });
        task.detach();
    }
    async_io::block_on(executor.run(async {
        while !stop.load(Ordering::Relaxed) {
            Timer::after(Duration::from_millis(20)).await;
        }
    }));
}
