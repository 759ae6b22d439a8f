//! X1, X3 to X8 (cancels that wait): `cancel_sync`, and waits that could never end.

use crate::support::{Gate, HOUR, MS, Place, bases, thread_time};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tickless::callback::{CallbackLock, Cancel, Started};
use tickless::driver::CpuId;
use tickless::{CancelError, HrTimer, Timeout, Timers, VirtualTime};

/// Runs `cancel` on another thread while a callback is inside the gate, and opens the gate some
/// time after that thread has begun, before which `cancel` must not return. Returns its result.
fn cancelled_inside<T: Send>(gate: &Gate, wait: Duration, cancel: impl FnOnce() -> T + Send) -> T {
    gate.wait_inside();
    let (begun, has_begun) = mpsc::channel();
    std::thread::scope(|s| {
        let canceller = s.spawn(move || {
            begun.send(()).unwrap();
            cancel()
        });
        has_begun.recv().unwrap();
        // Miri's clock advances by 5 us with every few instructions.
        std::thread::sleep(if cfg!(miri) { 10 * wait } else { wait });
        assert!(!canceller.is_finished(), "returned while the callback ran");
        gate.open();
        canceller.join().unwrap()
    })
}

/// Goal: X7 (a waiter sleeps): a cancel that waits for long does not use the CPU.
#[test]
#[cfg_attr(miri, ignore = "Miri has no clock of a thread's CPU time")]
fn a_waiting_cancel_uses_no_cpu() {
    let timers = Timers::process().unwrap();
    let (gate, pass) = Gate::shared();
    let timer = timers.hrtimer(move |_| pass.pass());
    timer.start(Duration::ZERO).unwrap();
    let used = cancelled_inside(&gate, 100 * MS, || {
        let before = thread_time();
        timer.cancel_sync().unwrap();
        thread_time() - before
    });
    assert!(used < 20 * MS, "{used:?} of CPU to wait for 100 ms");
}

/// Goal: X6 (a wait that could never end is refused).
#[test]
fn a_callback_cannot_wait_for_itself() {
    let timers = Timers::process().unwrap();
    let place: Place<Arc<Timeout>> = Place::empty();
    let (tx, rx) = mpsc::channel();
    let found = place.clone();
    let timer = Arc::new(timers.timeout(move |_| {
        let own = found.take().unwrap();
        own.start(HOUR).unwrap();
        let waits = [own.cancel_sync(), own.cancel_single_shot(), own.shutdown_sync()];
        tx.send((waits, own.is_pending())).unwrap();
    }));
    place.put(Arc::clone(&timer));
    timer.start(Duration::ZERO).unwrap();
    let found = rx.recv_timeout(crate::support::PATIENCE).unwrap();
    assert_eq!(found, ([Err(CancelError::OwnCallback); 3], false));
    timer.cancel_sync().expect("outside of the callback it can be waited for");
}

/// Goal: X6 (no endless wait).
#[test]
fn callbacks_cannot_wait_for_each_other() {
    let timers = bases(2);
    for circle in [true, false] {
        let (tx, rx) = mpsc::channel();
        let places: [Place<Arc<HrTimer>>; 2] = [Place::empty(), Place::empty()];
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let pair = [0, 1].map(|me: usize| {
            let (other, barrier, tx) = (places[1 - me].clone(), Arc::clone(&barrier), tx.clone());
            let callback = move |_: &mut tickless::Fired<'_>| {
                let other = other.take().unwrap();
                barrier.wait();
                if circle || me == 0 {
                    let found = other.cancel_sync();
                    if found.is_err() {
                        assert_eq!(other.start(HOUR), Ok(Started::Idle), "it waits no more");
                    }
                    tx.send(found).unwrap();
                } else {
                    std::thread::sleep(20 * MS);
                }
            };
            Arc::new(timers.hrtimer(callback).pinned(CpuId(me as u16)))
        });
        for (place, timer) in places.iter().zip(&pair) {
            place.put(Arc::clone(timer));
        }
        for timer in &pair {
            timer.start(Duration::ZERO).unwrap();
        }
        drop(tx);
        let results: Vec<_> = (0..=usize::from(circle))
            .map(|_| rx.recv_timeout(crate::support::PATIENCE).expect("both hang"))
            .collect();
        match circle {
            true => assert!(results.contains(&Err(CancelError::EachOther)), "{results:?}"),
            false => assert_eq!(results, [Ok(Cancel::Running)]),
        }
        for timer in &pair {
            timer.cancel_sync().unwrap();
        }
    }
}

/// Goal: X6 (no endless wait), also where the driver of a base does the work of its expiry thread.
#[test]
fn callbacks_of_two_clocks_cannot_wait_for_each_other() {
    let builder = || Timers::builder().bases(1).expiry_threads();
    let times = [0, 1].map(|_| VirtualTime::with_builder(builder(), tickless::time::Instant::ZERO));
    let places: [Place<Arc<Timeout>>; 2] = [Place::empty(), Place::empty()];
    let (barrier, (tx, rx)) = (Arc::new(std::sync::Barrier::new(2)), mpsc::channel());
    let pair = [0, 1].map(|me: usize| {
        let (other, barrier, tx) = (places[1 - me].clone(), Arc::clone(&barrier), tx.clone());
        Arc::new(times[me].timers().timeout(move |_| {
            let other = other.take().unwrap();
            barrier.wait();
            tx.send(other.cancel_sync()).unwrap();
        }))
    });
    for (place, timer) in places.iter().zip(&pair) {
        place.put(Arc::clone(timer));
        timer.start(MS).unwrap();
    }
    for time in times.clone() {
        // Not joined: it would hang if the test fails.
        std::thread::spawn(move || time.advance(HOUR));
    }
    let wait = || rx.recv_timeout(crate::support::PATIENCE).expect("both hang");
    assert!([wait(), wait()].contains(&Err(CancelError::EachOther)));
}

/// Goal: X6 (no endless wait).
#[test]
fn a_cancel_under_a_lock_that_the_callback_waits_for_is_refused() {
    let timers = bases(2);
    for canceller_first in [false, true] {
        let lock = Arc::new(CallbackLock::new(0));
        let gate = Gate::new();
        let (in_callback, pass) = (Arc::clone(&lock), gate.clone());
        let timer = timers.timeout(move |_| {
            pass.pass();
            *in_callback.lock() += 1;
        });
        let mine = lock.lock();
        timer.start(Duration::ZERO).unwrap();
        gate.wait_inside();
        std::thread::scope(|s| {
            let opener = s.spawn(|| {
                if canceller_first {
                    std::thread::sleep(20 * MS);
                }
                gate.open();
            });
            if !canceller_first {
                opener.join().unwrap();
                std::thread::sleep(20 * MS);
            }
            let begun = Instant::now();
            assert_eq!(timer.cancel_sync(), Err(CancelError::Lock));
            assert!(begun.elapsed() < crate::support::PATIENCE / 2);
            assert_eq!(timer.start(HOUR), Ok(Started::Idle), "no cancel waits any more");
        });
        drop(mine);
        assert!(matches!(timer.cancel_sync(), Ok(Cancel::Pending | Cancel::Running)));
        assert_eq!(*lock.lock(), 1);
        assert_eq!(
            Arc::into_inner(lock).map(CallbackLock::into_inner),
            None,
            "the callback has one"
        );
    }
}
