//! Timers of tokio, on its paused clock.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use futures_core::Stream;
use std::collections::HashMap;
use std::time::Duration;
use tickless_conformance::Timers;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_util::time::delay_queue::Key;

const MS: u64 = 1_000_000;
/// Tokio's timers reach two years ahead.
const HORIZON: u64 = 365 * 24 * 3_600_000 * MS;

/// A runtime whose clock stands still until it is advanced.
struct Clock {
    runtime: Runtime,
    start: Instant,
    now: u64,
}

impl Clock {
    fn new() -> Clock {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime starts");
        let start = runtime.block_on(async { Instant::now() });
        Clock { runtime, start, now: 0 }
    }

    fn at(&self, nanos: u64) -> Instant {
        self.start + Duration::from_nanos(nanos)
    }

    fn advance(&mut self, now: u64) {
        let by = Duration::from_nanos(now - self.now);
        self.now = now;
        self.runtime.block_on(tokio::time::advance(by));
    }
}

/// A sleep for each key.
pub struct TokioSleep {
    clock: Clock,
    sleeps: HashMap<u32, Pin<Box<tokio::time::Sleep>>>,
}

impl Timers for TokioSleep {
    const NAME: &str = "tokio 1.54.1, sleep";
    const GRANULARITY: u64 = MS;
    const ARM_REPLACES: bool = true;
    const HORIZON: u64 = HORIZON;

    fn new() -> TokioSleep {
        TokioSleep { clock: Clock::new(), sleeps: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let at = self.clock.at(deadline);
        let _entered = self.clock.runtime.enter();
        let mut sleep = Box::pin(tokio::time::sleep_until(at));
        // Registers it. A deadline that has passed is ready at once.
        let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.sleeps.insert(key, sleep);
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        let at = self.clock.at(deadline);
        let _entered = self.clock.runtime.enter();
        let sleep = self.sleeps.get_mut(&key).expect("a pending key has a sleep");
        sleep.as_mut().reset(at);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let _entered = self.clock.runtime.enter();
        self.sleeps.remove(&key).is_some()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut TokioSleep, u32)) {
        self.clock.advance(now);
        let fired: Vec<u32> = self
            .sleeps
            .iter()
            .filter_map(|(&key, sleep)| sleep.is_elapsed().then_some(key))
            .collect();
        for key in fired {
            self.sleeps.remove(&key);
            fire(self, key);
        }
    }
}

/// `DelayQueue`.
pub struct DelayQueue {
    queue: tokio_util::time::DelayQueue<u32>,
    keys: HashMap<u32, Key>,
    clock: Clock,
}

impl Timers for DelayQueue {
    const NAME: &str = "tokio-util 0.7.20, DelayQueue";
    const GRANULARITY: u64 = MS;
    const HORIZON: u64 = HORIZON;

    fn new() -> DelayQueue {
        let clock = Clock::new();
        let queue = clock.runtime.block_on(async { tokio_util::time::DelayQueue::new() });
        DelayQueue { queue, keys: HashMap::new(), clock }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let at = self.clock.at(deadline);
        let _entered = self.clock.runtime.enter();
        self.keys.insert(key, self.queue.insert_at(key, at));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        let at = self.clock.at(deadline);
        let _entered = self.clock.runtime.enter();
        self.queue.reset_at(&self.keys[&key], at);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let _entered = self.clock.runtime.enter();
        self.keys.remove(&key).is_some_and(|key| self.queue.try_remove(&key).is_some())
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut DelayQueue, u32)) {
        self.clock.advance(now);
        loop {
            let next = {
                let _entered = self.clock.runtime.enter();
                Pin::new(&mut self.queue).poll_next(&mut Context::from_waker(Waker::noop()))
            };
            let Poll::Ready(Some(expired)) = next else { return };
            let key = expired.into_inner();
            self.keys.remove(&key);
            fire(self, key);
        }
    }
}

/// `HashMapDelay`, over a `DelayQueue`.
pub struct DelayMap {
    map: delay_map::HashMapDelay<u32, ()>,
    clock: Clock,
}

impl DelayMap {
    fn delay(&self, deadline: u64) -> Duration {
        Duration::from_nanos(deadline.saturating_sub(self.clock.now))
    }
}

impl Timers for DelayMap {
    const NAME: &str = "delay_map 0.4.1, HashMapDelay";
    const GRANULARITY: u64 = MS;
    const ARM_REPLACES: bool = true;
    const HORIZON: u64 = HORIZON;

    fn new() -> DelayMap {
        let clock = Clock::new();
        let map =
            clock.runtime.block_on(async { delay_map::HashMapDelay::new(Duration::from_secs(1)) });
        DelayMap { map, clock }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let delay = self.delay(deadline);
        let _entered = self.clock.runtime.enter();
        self.map.insert_at(key, (), delay);
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        let delay = self.delay(deadline);
        let _entered = self.clock.runtime.enter();
        self.map.update_timeout(&key, delay);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let _entered = self.clock.runtime.enter();
        self.map.remove(&key).is_some()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut DelayMap, u32)) {
        self.clock.advance(now);
        loop {
            let next = {
                let _entered = self.clock.runtime.enter();
                self.map.poll_expired(&mut Context::from_waker(Waker::noop()))
            };
            let Poll::Ready(Some(Ok((key, ())))) = next else { return };
            fire(self, key);
        }
    }
}
