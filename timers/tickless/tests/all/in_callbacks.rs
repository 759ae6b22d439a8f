//! Callbacks arm, cancel and drop timers, including their own, and the whole set.

use crate::support::{Gate, Log, MS, PATIENCE, Place, bases, rounds, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use tickless::driver::CpuId;
use tickless::{HrTimer, Timeout, Timers, VirtualTime};

#[test]
fn restarts_through_fired_fire_again() {
    let time = VirtualTime::new();
    let (log, begin) = (Log::new(), time.now());
    let written = log.clone();
    let timer = time.timers().hrtimer(move |f| {
        written.push((f.now() - begin).as_millis());
        match written.len() {
            1 => f.restart(MS * 10),
            2 => f.restart_range(f.now() + MS * 7, f.now() + MS * 9),
            3 => assert_eq!(f.forward(MS * 4), 1),
            4 => {
                f.restart(MS);
                f.restart(MS * 3);
            }
            _ => {
                f.restart(MS);
                f.stop();
            }
        }
    });
    timer.start(MS).unwrap();
    time.advance(MS * 100);
    // The window of the third, 18 to 20, fired at its end; forwarding moves both ends.
    assert_eq!(log.take(), [1, 11, 20, 24, 27]);
    assert_eq!((timer.is_active(), time.timers().stats().panics), (false, 0));
}

/// Goal: X4 (drops in the own callback).
#[test]
fn a_timer_is_dropped_in_its_own_callback() {
    let timers = bases(2);
    for round in 0..rounds(200) {
        let (place, owned) = (Place::<HrTimer>::empty(), Arc::new(AtomicU64::new(0)));
        let (own, captured) = (place.clone(), Arc::clone(&owned));
        place.put(timers.hrtimer(move |f| {
            let own = own.take().expect("it is there");
            if round % 3 == 0 {
                own.start(MS).unwrap();
            }
            drop(own);
            captured.fetch_add(1, Ordering::Relaxed);
            f.restart(Duration::ZERO);
        }));
        place.with(|timer| timer.start(Duration::ZERO)).unwrap();
        wait_until("the closure is dropped", || Arc::strong_count(&owned) == 1);
        assert_eq!(owned.load(Ordering::Relaxed), 1, "it ran once");
    }
    let total = timers.stats().total();
    assert_eq!((timers.stats().pending(), timers.stats().panics), (0, 0));
    assert_eq!(total.armed, total.fired + total.cancelled);
}

/// Goal: X1 (nothing runs after a cancel) for drops.
#[test]
fn a_drop_from_outside_waits_for_the_callback() {
    let (driver, deferring) = (bases(1), Timers::builder().bases(1).expiry_threads());
    let deferring = deferring.start().unwrap();
    for round in 1..=rounds(200) {
        let timers = if round % 2 == 0 { &driver } else { &deferring };
        let shared = Arc::new(AtomicU64::new(0));
        let (begun, value) = (Arc::new(AtomicBool::new(false)), Arc::clone(&shared));
        let announce = Arc::clone(&begun);
        let timer = timers.hrtimer(move |_| {
            announce.store(true, Ordering::Relaxed);
            for _ in 0..round * 100 {
                std::hint::spin_loop();
            }
            value.store(round, Ordering::Relaxed);
        });
        let timer = timer.deferred();
        timer.start(Duration::ZERO).unwrap();
        wait_until("the callback runs", || begun.load(Ordering::Relaxed));
        drop(timer);
        assert_eq!(shared.load(Ordering::Relaxed), round);
        assert_eq!(Arc::strong_count(&shared), 1, "the closure is dropped too");
    }
    assert_eq!(driver.stats().panics + deferring.stats().panics, 0);
}

#[test]
fn a_callback_drops_a_timer_that_runs_on_another_base() {
    let timers = bases(2);
    let (place, owned, gate) = (Place::<Timeout>::empty(), Arc::new(()), Gate::new());
    let (captured, pass) = (Arc::clone(&owned), gate.clone());
    let long = timers.timeout(move |_| {
        let _captured = &captured;
        pass.pass();
        assert_eq!(Arc::strong_count(&captured), 2, "dropped while it runs");
    });
    place.put(long.pinned(CpuId(0)));
    place.with(|timer| timer.start(Duration::ZERO)).unwrap();
    gate.wait_inside();
    let (dropped, was_dropped) = channel();
    let victim = place.clone();
    let killer = timers.hrtimer(move |_| {
        drop(victim.take());
        dropped.send(()).unwrap();
    });
    let killer = killer.pinned(CpuId(1));
    killer.start(Duration::ZERO).unwrap();
    was_dropped.recv_timeout(PATIENCE).expect("the killer does not wait");
    assert_eq!(Arc::strong_count(&owned), 2);
    gate.open();
    wait_until("the closure is dropped", || Arc::strong_count(&owned) == 1);
    assert_eq!(timers.stats().panics, 0);
}

/// Goal: H4 (forks, exits, drops).
#[test]
fn the_last_handle_is_dropped_in_a_callback() {
    for count in [1, 3] {
        let timers = bases(count);
        let (place, owned) = (Place::<(Timers, HrTimer)>::empty(), Arc::new(()));
        let (last, captured) = (place.clone(), Arc::clone(&owned));
        let (tx, rx) = channel();
        let timer = timers.hrtimer(move |_| {
            let _captured = &captured;
            drop(last.take());
            tx.send(()).unwrap();
        });
        place.put((timers, timer));
        let owner = place.clone();
        // At the deadline the test holds no handle.
        place.with(|(_, timer)| timer.start(MS * 5)).unwrap();
        drop(place);
        rx.recv_timeout(PATIENCE).expect("the callback continues after the drop");
        wait_until("the closure is dropped", || Arc::strong_count(&owned) == 1);
        drop(owner);
    }
}
