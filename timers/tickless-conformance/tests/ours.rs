//! The timers of this project keep their promises.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic)]

use core::ops::RangeInclusive;
use core::pin::Pin;
use core::task::{Context, Waker};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::time::Duration;
use tickless::local::future;
use tickless::local::{Class, Clock, FixedKey, FixedTimeouts, Key};
use tickless::time::Instant;
use tickless::{LocalTimers, Timeout, VirtualTime};
use tickless_conformance::{Effort, NextEvent, Order, Timers, check};

const MS: u64 = 1_000_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn assert_clean<T: Timers + 'static>() {
    let effort = Effort { histories: 600, limit: Duration::from_secs(120), ..Effort::default() };
    let report = check::<T>(effort);
    assert!(report.is_clean(), "{report}");
    let measured = report.measured.expect("it was measured");
    assert!(measured.lateness_ns <= measured.promised_ns, "{report}");
}

struct Local<const PRECISE: bool> {
    timers: LocalTimers<u32>,
    keys: HashMap<u32, Key>,
}

impl<const PRECISE: bool> Timers for Local<PRECISE> {
    const NAME: &str = if PRECISE { "LocalTimers, precise" } else { "LocalTimers, coarse" };
    const NEXT_EVENT: NextEvent = if PRECISE { NextEvent::Exact } else { NextEvent::Bound };
    const ORDER: Order = if PRECISE { Order::Deadline } else { Order::Any };
    const ARM_REPLACES: bool = true;
    const REENTRANT: bool = true;

    fn new() -> Self {
        Local { timers: LocalTimers::new(Clock::manual(at(0))), keys: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let timers = &mut self.timers;
        let key = *self.keys.entry(key).or_insert_with(|| {
            let key = if PRECISE { timers.insert_precise(key) } else { timers.insert(key) };
            key.expect("there is room")
        });
        self.timers.start_at(key, at(deadline)).expect("the timer exists");
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.arm(key, deadline);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let key = self.keys.get(&key);
        key.is_some_and(|&key| self.timers.cancel(key).expect("the timer exists"))
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32)) {
        // The callback of the wheel has the wheel only, so that the rest is moved in for the call.
        let mut keys = std::mem::take(&mut self.keys);
        let mut outer = std::mem::replace(&mut self.timers, LocalTimers::new(Clock::manual(at(0))));
        outer.advance(at(now), |timers, key| {
            let number = *timers.get(key).expect("the timer exists");
            std::mem::swap(&mut self.timers, timers);
            std::mem::swap(&mut self.keys, &mut keys);
            fire(self, number);
            std::mem::swap(&mut self.timers, timers);
            std::mem::swap(&mut self.keys, &mut keys);
        });
        (self.timers, self.keys) = (outer, keys);
    }

    fn next_event(&mut self) -> Option<u64> {
        self.timers.next_event().map(Instant::as_nanos)
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let distance = deadline.saturating_sub(now);
        let late = if PRECISE { 0 } else { distance / 100 * 13 + 2 * MS };
        deadline..=deadline.max(now).saturating_add(late)
    }
}

/// Sleeps of one thread, each polled when it is made, with the waker that adds its key to `woken`.
struct Sleeps<const PRECISE: bool> {
    executor: future::Sleeps,
    sleeps: HashMap<u32, future::Sleep>,
    woken: Arc<Mutex<Vec<u32>>>,
}

struct Task(u32, Arc<Mutex<Vec<u32>>>);

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        self.1.lock().expect("no panic").push(self.0);
    }
}

impl<const PRECISE: bool> Sleeps<PRECISE> {
    fn poll(&mut self, key: u32) -> bool {
        let waker = Waker::from(Arc::new(Task(key, Arc::clone(&self.woken))));
        let sleep = Pin::new(self.sleeps.get_mut(&key).expect("it is pending"));
        sleep.poll(&mut Context::from_waker(&waker)).is_ready()
    }
}

impl<const PRECISE: bool> Timers for Sleeps<PRECISE> {
    const NAME: &str = if PRECISE { "local sleeps" } else { "local sleeps, coarse" };
    const NEXT_EVENT: NextEvent = if PRECISE { NextEvent::Exact } else { NextEvent::Bound };
    const ORDER: Order = if PRECISE { Order::Deadline } else { Order::Any };
    const ARM_REPLACES: bool = true;

    fn new() -> Self {
        let executor = future::Sleeps::new(Clock::manual(at(0)));
        Sleeps { executor, sleeps: HashMap::new(), woken: Arc::default() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let timers = self.executor.handle();
        // Due sleeps are ready when they are polled, without a timer.
        let deadline = at(deadline).max(timers.now() + Duration::from_nanos(1));
        let sleep = if PRECISE {
            timers.sleep_until(deadline)
        } else {
            timers.coarse_sleep(deadline - timers.now())
        };
        self.sleeps.insert(key, sleep);
        assert!(!self.poll(key), "early");
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.sleeps.get_mut(&key).expect("it is pending").reset_at(at(deadline));
    }

    fn cancel(&mut self, key: u32) -> bool {
        self.sleeps.remove(&key).is_some()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32)) {
        self.executor.advance(at(now));
        let woken = std::mem::take(&mut *self.woken.lock().expect("no panic"));
        for key in woken {
            assert!(self.poll(key), "woken early");
            self.sleeps.remove(&key);
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        self.executor.next_event().map(Instant::as_nanos)
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = Local::<PRECISE>::may_fire(now, deadline.max(now + 1));
        *due.start().min(&deadline)..=*due.end()
    }
}

struct Fixed {
    timeouts: FixedTimeouts<u32>,
    classes: HashMap<u64, Class>,
    keys: HashMap<u32, FixedKey>,
}

impl Timers for Fixed {
    const NAME: &str = "FixedTimeouts";
    const NEXT_EVENT: NextEvent = NextEvent::Bound;

    fn new() -> Fixed {
        let timeouts = FixedTimeouts::new(Clock::manual(at(0)));
        Fixed { timeouts, classes: HashMap::new(), keys: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let duration = deadline.saturating_sub(self.timeouts.now().as_nanos());
        let timeouts = &mut self.timeouts;
        let add = || timeouts.add_class(Duration::from_nanos(duration)).expect("there is room");
        let class = *self.classes.entry(duration).or_insert_with(add);
        let timer = timeouts.insert(class, key).expect("there is room");
        timeouts.start(timer).expect("the timer exists");
        self.keys.insert(key, timer);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let Some(key) = self.keys.remove(&key) else { return false };
        let was_pending = self.timeouts.is_pending(key);
        self.timeouts.remove(key);
        was_pending
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Fixed, u32)) {
        let mut fired = Vec::new();
        self.timeouts.advance(at(now), |timeouts, key| fired.extend(timeouts.remove(key)));
        for key in fired {
            self.keys.remove(&key);
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        self.timeouts.next_event().map(Instant::as_nanos)
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let distance = deadline.saturating_sub(now);
        deadline.max(now)..=deadline.max(now).saturating_add((distance / 16).max(1_000))
    }
}

/// `Timeout`s in virtual time, where they are exact.
struct Virtual {
    time: VirtualTime,
    timeouts: HashMap<u32, Timeout>,
    fired: Arc<Mutex<Vec<u32>>>,
    start: u64,
}

impl Timers for Virtual {
    const NAME: &str = "Timeout in virtual time";
    // Exact up to twelve days ahead.
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    const ORDER: Order = Order::DeadlineThenArming;
    const ARM_REPLACES: bool = true;

    fn new() -> Virtual {
        let time = VirtualTime::new();
        let start = time.now().as_nanos();
        Virtual { time, timeouts: HashMap::new(), fired: Arc::default(), start }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let fired = Arc::clone(&self.fired);
        let timers = self.time.timers();
        let new = || timers.timeout(move |_| fired.lock().expect("no panic").push(key));
        let timeout = self.timeouts.entry(key).or_insert_with(new);
        let _ = timeout.start_at(at(self.start + deadline));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.arm(key, deadline);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let timeout = self.timeouts.get(&key);
        timeout.is_some_and(|timeout| timeout.cancel() == tickless::callback::Cancel::Pending)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Virtual, u32)) {
        self.time.advance_to(at(self.start + now));
        let fired = std::mem::take(&mut *self.fired.lock().expect("no panic"));
        fired.into_iter().for_each(|key| fire(self, key));
    }

    fn next_event(&mut self) -> Option<u64> {
        self.time.next_event().map(|event| event.as_nanos() - self.start)
    }
}

#[test]
fn coarse_local_timers() {
    assert_clean::<Local<false>>();
}

#[test]
fn precise_local_timers() {
    assert_clean::<Local<true>>();
}

#[test]
fn sleeps_of_one_thread() {
    assert_clean::<Sleeps<false>>();
    assert_clean::<Sleeps<true>>();
}

#[test]
fn fixed_timeouts() {
    assert_clean::<Fixed>();
}

#[test]
fn timeouts_in_virtual_time() {
    assert_clean::<Virtual>();
}
