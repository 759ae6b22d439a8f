//! H3 (panics): a callback's panic is caught, counted and reported, and the base continues, even if
//! the payload, the closure or the reporter panics, too.

use crate::support::{Log, PATIENCE, Place, bases, shared_count, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::{HrTimer, Timeout, Timers, VirtualTime};

/// Panics when dropped, unless that would abort the process.
struct Grenade(&'static str);

impl Drop for Grenade {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

/// Asserts that the driver of the only base still runs callbacks.
fn assert_lives(timers: &Timers) {
    let (tx, rx) = channel();
    let canary = timers.hrtimer(move |_| tx.send(()).unwrap_or(()));
    canary.start(Duration::ZERO).unwrap();
    rx.recv_timeout(PATIENCE).expect("the driver still runs callbacks");
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    payload.downcast_ref::<&str>().map_or("?", |text| text).to_owned()
}

/// A timer that reports each expiry and panics in every second one, by calling `panic`.
fn every_other(timers: &Timers, panic: fn()) -> (Timeout, Receiver<u32>) {
    let (tx, rx) = channel();
    let mut calls = 0;
    let timer = timers.timeout(move |_| {
        calls += 1;
        tx.send(calls).unwrap();
        if calls % 2 == 1 {
            panic();
        }
    });
    (timer, rx)
}

#[test]
fn a_panic_restarts_nothing() {
    let time = VirtualTime::new();
    let (place, calls) = (Place::<HrTimer>::empty(), Arc::new(AtomicU64::new(0)));
    let (own, counted) = (place.clone(), Arc::clone(&calls));
    place.put(time.timers().hrtimer(move |fired| {
        fired.restart(Duration::from_secs(1));
        if counted.fetch_add(1, Ordering::Relaxed) == 1 {
            own.with(|timer| timer.start(Duration::from_secs(5))).unwrap();
        }
        panic!("after asking for a restart");
    }));
    place.with(|timer| timer.start(Duration::from_secs(1))).unwrap();
    time.advance(Duration::from_secs(10));
    assert_eq!((calls.load(Ordering::Relaxed), time.next_event()), (1, None));
    place.with(|timer| timer.start(Duration::from_secs(1))).unwrap();
    time.advance(Duration::from_secs(2));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(place.with(HrTimer::cancel), Cancel::Pending, "armed by handle before the panic");
    assert_eq!(time.timers().stats().panics, 2);
    drop(place.take());
}

#[test]
fn reporters_and_payloads_may_panic() {
    let (reported, counted) = shared_count();
    let builder = Timers::builder().bases(1).on_panic(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::panic::panic_any(Grenade("the reporter's payload"));
    });
    let timers = builder.start().unwrap();
    let (timer, rx) = every_other(&timers, || std::panic::panic_any(Grenade("the payload")));
    for round in 1..=4 {
        timer.start(Duration::ZERO).unwrap();
        assert_eq!(rx.recv_timeout(PATIENCE), Ok(round));
    }
    assert_lives(&timers);
    assert_eq!((timers.stats().panics, reported.load(Ordering::Relaxed)), (2, 2));
    drop(timer);
}

/// Goal: X4 (drops in callbacks).
#[test]
fn reporters_and_payloads_may_drop_the_timer() {
    for by_reporter in [true, false] {
        let place = Place::<HrTimer>::empty();
        let (registry, own, owned) = (place.clone(), place.clone(), Arc::new(()));
        let builder = Timers::builder().bases(1).on_panic(move |_| {
            if by_reporter {
                drop(registry.take());
            }
        });
        let timers = builder.start().unwrap();
        let captured = Arc::clone(&owned);
        place.put(timers.hrtimer(move |_| {
            let _captured = &captured;
            std::panic::panic_any(if by_reporter { None } else { own.take() });
        }));
        place.with(|timer| timer.start(Duration::from_millis(1))).unwrap();
        wait_until("the closure is dropped", || Arc::strong_count(&owned) == 1);
        assert_lives(&timers);
        assert!(place.take().is_none());
    }
}

#[test]
fn a_closure_that_panics_when_dropped_panics_the_dropping_thread() {
    let timers = bases(1);
    let grenade = Grenade("the closure");
    let timer = timers.timeout(move |_| {
        let _captured = &grenade;
    });
    timer.start(Duration::from_secs(60)).unwrap();
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(timer)));
    assert!(dropped.is_err());
    assert_eq!((timers.stats().pending(), timers.stats().panics), (0, 0));
    assert_lives(&timers);
}

#[test]
fn a_closure_may_panic_when_its_callback_drops_it() {
    let reports = Log::new();
    let (written, base) = (reports.clone(), Place::<Timers>::empty());
    let again = base.clone();
    let builder = Timers::builder().bases(1).on_panic(move |payload| {
        written.push(message(payload));
        let same_size = [7u64; 3];
        let another = again.with(|timers| timers.hrtimer(move |_| assert_eq!(same_size[2], 7)));
        another.start(Duration::from_secs(60)).unwrap();
        assert_eq!(another.cancel(), Cancel::Pending);
    });
    let timers = builder.start().unwrap();
    base.put(timers.clone());
    for (calls, panics) in [(0, 1), (1, 2)] {
        let place = Place::<HrTimer>::empty();
        let (own, grenade) = (place.clone(), Grenade("the closure"));
        place.put(timers.hrtimer(move |_| {
            let _captured = &grenade;
            drop(own.take());
            if calls == 1 {
                panic!("the callback");
            }
        }));
        let before = timers.stats().panics;
        place.with(|timer| timer.start(Duration::from_millis(1))).unwrap();
        wait_until("both are counted", || timers.stats().panics == before + panics);
    }
    assert_lives(&timers);
    assert_eq!(reports.take(), ["?", "the callback", "?"]);
    drop(base.take());
}
