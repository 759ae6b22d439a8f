//! H4 (forks, exits, drops): handles may be dropped in any order, on any thread, including while a
//! thread or the program ends.

use crate::support::{HOUR, MS, PATIENCE, bases, child_test, thread_names, wait_until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tickless::driver::CpuId;
use tickless::{Periodic, Timeout, Timers};

#[test]
fn timers_outlive_their_set() {
    let timers = bases(2);
    let (tx, rx) = channel();
    let timer = timers.hrtimer(move |f| {
        tx.send(()).unwrap();
        f.restart(MS);
    });
    drop(timers.clone());
    drop(timers);
    let armed = std::thread::spawn(move || timer.start(MS).map(|_| timer));
    let timer = armed.join().unwrap().unwrap();
    (0..5).for_each(|_| rx.recv_timeout(PATIENCE).unwrap());
    drop(timer);
    assert!(rx.iter().count() < 1000 * 20, "the closure, and with it the channel, was dropped");
}

#[test]
fn the_last_drop_waits_for_the_drivers() {
    let (begun, over) = <[Arc<AtomicBool>; 2]>::default().into();
    let (announce, done) = (Arc::clone(&begun), Arc::clone(&over));
    let timers = bases(2);
    let place = crate::support::Place::<Timeout>::empty();
    let own = place.clone();
    place.put(timers.timeout(move |_| {
        drop(own.take());
        announce.store(true, Ordering::Release);
        std::thread::sleep(MS * 20);
        done.store(true, Ordering::Release);
    }));
    place.with(|timer| timer.start(Duration::ZERO)).unwrap();
    wait_until("the callback runs", || begun.load(Ordering::Acquire));
    drop(timers);
    assert!(over.load(Ordering::Acquire));
}

#[test]
fn dropped_sets_leave_no_threads() {
    // Other tests have drivers, too, but none has so many bases.
    let threads = || thread_names().iter().filter(|name| name.ends_with(".7")).count();
    for _ in 0..30 {
        let timers = bases(8);
        let timer = |_| timers.timeout(|_| {}).pinned(CpuId(7));
        let pending: Vec<_> = (0..10).map(timer).collect();
        pending.iter().for_each(|timer| assert!(timer.start(HOUR).is_ok()));
        wait_until("the driver has its name", || threads() == 1);
        drop(timers);
        drop(pending);
        // A joined thread may still be listed for a moment.
        wait_until("its driver has ended", || threads() == 0);
    }
}

/// The environment variable that selects a child process's task.
const CHILD: &str = "TICKLESS_TEST_EXIT";

#[test]
fn a_program_ends_with_timers_in_statics() {
    if let Ok(way) = std::env::var(CHILD) {
        return exit(&way);
    }
    for (way, code) in [("return", 0), ("exit", 3), ("callback", 5)] {
        for _ in 0..3 {
            let test = "drop_order::a_program_ends_with_timers_in_statics";
            let mut child = child_test(test, CHILD, way);
            child.arg("--test-threads=1").stdout(std::process::Stdio::null());
            let mut child = child.spawn().unwrap();
            let begun = Instant::now();
            let mut status = None;
            wait_until("the program ends", || {
                status = child.try_wait().unwrap();
                if status.is_none() && begun.elapsed() > PATIENCE / 2 {
                    child.kill().unwrap();
                }
                status.is_some()
            });
            assert_eq!(status.and_then(|status| status.code()), Some(code), "by {way}");
        }
    }
}

fn exit(way: &str) {
    static TIMERS: OnceLock<Timers> = OnceLock::new();
    static KEPT: OnceLock<(Timeout, Periodic, Timeout)> = OnceLock::new();
    let timers = TIMERS.get_or_init(|| bases(2));
    let is_callback = way == "callback";
    let last = timers.timeout(move |_| {
        if is_callback {
            std::process::exit(5);
        }
    });
    let kept = KEPT.get_or_init(|| (timers.timeout(|_| {}), timers.periodic(|_| {}), last));
    kept.0.start(HOUR).unwrap();
    kept.1.start(Duration::from_micros(20)).unwrap();
    std::thread::spawn(move || {
        loop {
            kept.0.start(HOUR).unwrap();
            kept.0.cancel();
        }
    });
    std::thread::sleep(MS * 5);
    if is_callback {
        kept.2.start(MS).unwrap();
        std::thread::sleep(PATIENCE);
    }
    if way == "exit" {
        std::process::exit(3);
    }
}
