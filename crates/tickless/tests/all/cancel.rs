//! X10 (each arming fires or is cancelled, never both): what a cancel finds.

use crate::support::{AnyTimer, Gate, HOUR, MS, Rng, seed, shared_count, wait_until};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tickless::callback::{Cancel, Started};
use tickless::driver::CpuId;
use tickless::{Fired, Timers, VirtualTime};

#[test]
fn starts_and_cancels_report_pending_and_idle() {
    let time = VirtualTime::new();
    for timer in AnyTimer::both(time.timers(), |_| {}) {
        assert_eq!(
            (timer.cancel(), timer.is_pending(), timer.is_active()),
            (Cancel::Idle, false, false)
        );
        assert_eq!(timer.start(MS), Ok(Started::Idle));
        assert_eq!([timer.start(HOUR), timer.start(MS)], [Ok(Started::Pending); 2]);
        assert_eq!((timer.is_pending(), timer.is_active()), (true, true));
        assert_eq!((timer.cancel(), timer.cancel()), (Cancel::Pending, Cancel::Idle));
        assert!(!timer.is_pending() && !timer.is_active());
        assert_eq!(timer.start(MS), Ok(Started::Idle));
        time.advance(MS * 3);
        assert_eq!((timer.is_pending(), timer.cancel()), (false, Cancel::Idle));
    }
    let total = time.timers().stats().total();
    assert_eq!((total.armed, total.rearmed, total.cancelled, total.fired), (4, 4, 2, 2));
}

/// Goal: X10 (fires or is cancelled) in a race. Method. Method: two threads; each arms a timer for
/// about now, cancels it at about that time, and compares the cancel's result with the firings.
#[test]
fn each_arming_fires_or_is_cancelled() {
    let seed = seed("cancel", "each_arming_fires_or_is_cancelled");
    let timers = Timers::builder().bases(2).start().unwrap();
    let worker = |seed: u64| {
        let mut rng = Rng::new(seed);
        let (calls, counted) = shared_count();
        let callback = move |_: &mut Fired<'_>| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        // A timeout fires with the next tick, so few of them fire before the cancel.
        let [timeout, hrtimer] = AnyTimer::both(&timers, callback);
        let mut cancelled = 0;
        for round in 0..4_000u64 {
            let timer = if round % 40 == 0 { &timeout } else { &hrtimer };
            assert_eq!(timer.start(Duration::from_nanos(rng.below(60_000))), Ok(Started::Idle));
            (0..rng.of_any_size(13)).for_each(|_| std::hint::spin_loop());
            let before = calls.load(Ordering::Relaxed);
            let found = timer.cancel();
            cancelled += u64::from(found == Cancel::Pending);
            wait_until("the callback has returned", || !timer.is_active());
            let fired = calls.load(Ordering::Relaxed);
            assert_eq!(fired + cancelled, round + 1, "{found:?}, {before} then {fired} calls");
        }
        (calls.load(Ordering::Relaxed), cancelled)
    };
    let ends = std::thread::scope(|s| {
        let threads = [seed, !seed].map(|seed| s.spawn(move || worker(seed)));
        threads.map(|thread| thread.join().expect("the worker's assertions hold"))
    });
    let total = timers.stats().total();
    println!("{total:?}");
    assert_eq!(total.fired, ends[0].0 + ends[1].0);
    assert_eq!(total.cancelled, ends[0].1 + ends[1].1);
    assert_eq!(total.armed, 8_000);
    assert!(total.fired > 0 && total.cancelled > 0);
}

#[test]
fn an_idle_timer_is_cancelled_while_its_base_is_busy() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let [idle, _] = AnyTimer::both(&timers, |_| {});
    idle.start(HOUR).unwrap();
    idle.cancel();
    let (gate, pass) = Gate::shared();
    let busy = timers.hrtimer(move |_| pass.pass()).pinned(CpuId(0));
    busy.start(Duration::ZERO).unwrap();
    gate.wait_inside();
    assert_eq!(idle.cancel(), Cancel::Idle);
    // Arming and cancelling other timers needs the base's lock, which no callback holds.
    assert_eq!((idle.start(HOUR), idle.cancel()), (Ok(Started::Idle), Cancel::Pending));
    gate.open();
}
