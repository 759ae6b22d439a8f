//! D3 (wakeups of expiry threads), D8 (offline bases), D9 (relief): expiry threads, their wakeups,
//! the threads that relieve them, and bases that go offline.

use crate::support::{HOUR, Log, MS, Rng, seed, shared_count, wait_until};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless::callback::Cancel;
use tickless::driver::{CpuId, OnlineError};
use tickless::policy::Deferral;

fn name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

fn one_base(deferral: Deferral) -> Timers {
    Timers::builder().bases(1).deferral(deferral).start().unwrap()
}

/// The name of the calling thread, without the numbers of its set and its base.
fn kind() -> String {
    let name = name();
    let (kind, numbers) = name.split_once('/').expect("a thread of ours has numbers");
    assert!(numbers.ends_with(".0"), "{name}: the first base of its set");
    kind.into()
}

#[test]
fn callbacks_run_in_the_driver_or_the_expiry_thread() {
    for (deferral, thread) in [
        (Deferral::None, "tickless"),
        (Deferral::OnExpiry, "tickless-x"),
        (Deferral::EveryTick, "tickless-x"),
    ] {
        let timers = one_base(deferral);
        let seen = Log::new();
        let note = |what: &'static str| {
            let seen = seen.clone();
            move |_: &mut tickless::Fired<'_>| seen.push((what, kind()))
        };
        let coarse = timers.timeout(note("coarse"));
        let hard = timers.hrtimer(note("hard"));
        let soft = timers.hrtimer(note("soft")).deferred();
        coarse.start(MS).unwrap();
        hard.start(MS).unwrap();
        soft.start(MS).unwrap();
        wait_until("all three fired", || seen.len() == 3);
        let mut found = seen.take();
        found.sort();
        let expected = [("coarse", thread), ("hard", "tickless"), ("soft", thread)];
        assert_eq!(found, expected.map(|(what, thread)| (what, thread.to_owned())));
        assert!(coarse.cancel_sync().is_ok() && soft.cancel_sync().is_ok());
    }
}

/// Goal: D3 (wakeups of expiry threads), H2 (no idle wakeups).
#[test]
fn expiry_threads_wake_only_for_expiries() {
    let run = |deferral, ticking| {
        let builder = Timers::builder().bases(1).deferral(deferral);
        let timers = if ticking { builder.ticking() } else { builder }.start().unwrap();
        let (fired, counted) = shared_count();
        let timer = timers.timeout(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        for round in 1..=3 {
            timer.start(60 * MS).unwrap();
            wait_until("it fired", || fired.load(Ordering::Relaxed) == round);
        }
        // On a busy machine some ticks are missed.
        wait_until("the driver has ticked", || !ticking || timers.stats().bases[0].ticks > 90);
        timers.stats().bases[0]
    };
    let after = run(Deferral::OnExpiry, false);
    assert!(after.deferred.wakes <= 4, "{after:?}");
    let ticking = run(Deferral::OnExpiry, true);
    assert!(ticking.ticks > 90 && ticking.deferred.wakes <= 4, "{ticking:?}");
    let before = run(Deferral::EveryTick, true);
    // The hypervisor may take the virtual CPU away for some ticks.
    assert!(before.deferred.wakes > before.ticks / 2 && before.ticks > 90, "{before:?}");
    assert!(before.deferred.empty_wakes >= before.deferred.wakes - 3);
    assert!(before.deferred.wakes >= 10 * after.deferred.wakes, "the point of deferred expiry");
}

/// Goal: D9 (relief).
#[test]
fn a_stuck_thread_is_relieved() {
    let builder = Timers::builder().bases(1).deferral(Deferral::OnExpiry).patience(5 * MS);
    let timers = builder.start().unwrap();
    let (open, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (opened, entered) = (Arc::clone(&open), Arc::clone(&inside));
    let stuck = timers.timeout(move |_| {
        assert_eq!(entered.fetch_add(1, Ordering::SeqCst) % 2, 0, "X2: overlaps itself");
        wait_until("the gate opens", || opened.load(Ordering::SeqCst));
        entered.fetch_add(1, Ordering::SeqCst);
    });
    stuck.start(Duration::ZERO).unwrap();
    wait_until("it is stuck", || inside.load(Ordering::SeqCst) == 1);
    let seen = Log::new();
    let behind: Vec<_> = (0..20)
        .map(|_| {
            let seen = seen.clone();
            timers.timeout(move |_| seen.push(name()))
        })
        .collect();
    for timer in &behind {
        timer.start(MS).unwrap();
    }
    stuck.start(MS).unwrap();
    let (precise, counted) = shared_count();
    let driver = timers.hrtimer(move |_| _ = counted.fetch_add(1, Ordering::SeqCst));
    driver.start(MS).unwrap();
    wait_until("the driver is not delayed", || precise.load(Ordering::SeqCst) == 1);
    wait_until("those behind it fired", || seen.len() == 20);
    assert!(seen.take().iter().all(|name| name.starts_with("tickless-r/")));
    assert!(stuck.is_pending(), "waits for its own callback");
    open.store(true, Ordering::SeqCst);
    wait_until("it has run again", || inside.load(Ordering::SeqCst) == 4);
    let stats = timers.stats().bases[0];
    assert!(stats.deferred.reliefs >= 1, "{stats:?}");
}

/// Goal: D8 (offline bases).
#[test]
fn an_offline_base_under_load_loses_no_timer() {
    const COUNT: u64 = if cfg!(miri) { 20 } else { 2_000 };
    let mut rng = Rng::new(seed("deferred", "an_offline_base_under_load_loses_no_timer"));
    for deferral in [Deferral::None, Deferral::OnExpiry] {
        let timers = Timers::builder().bases(2).deferral(deferral).start().unwrap();
        let fired = Arc::new(AtomicU64::new(0));
        let all: Vec<_> = (0..COUNT)
            .map(|place| {
                let fired = Arc::clone(&fired);
                let callback = move |_: &mut tickless::Fired<'_>| {
                    fired.fetch_add(1, Ordering::Relaxed);
                };
                timers.timeout(callback).pinned(CpuId(place as u16 % 2))
            })
            .collect();
        for timer in &all {
            timer.start(Duration::from_micros(rng.below(20_000))).unwrap();
        }
        let begun = Instant::now();
        while begun.elapsed() < 15 * MS {
            let base = CpuId(rng.below(2) as u16);
            match timers.offline(base) {
                Ok(_) => timers.online(base).unwrap(),
                Err(error) => assert_eq!(error, OnlineError::Last(base)),
            }
        }
        timers.offline(CpuId(0)).unwrap();
        wait_until("all fired", || fired.load(Ordering::Relaxed) == COUNT);
        let stats = timers.stats();
        assert_eq!((stats.pending(), stats.total().fired), (0, COUNT));
        assert!(!stats.bases[0].is_online && stats.bases[1].is_online);
        // A timer that is armed for an offline base goes to the other one.
        all[0].start(HOUR).unwrap();
        assert_eq!(timers.stats().bases[1].coarse, 1);
        assert_eq!(all[0].cancel_sync(), Ok(Cancel::Pending));
        assert_eq!(timers.offline(CpuId(2)), Err(OnlineError::NoSuchBase(CpuId(2))));
    }
}

/// Method: it rearms itself until a timeout of that base has fired, for which it must be woken.
#[test]
fn an_always_due_timer_does_not_block_the_expiry_thread() {
    let timers = one_base(Deferral::OnExpiry);
    let (begun, seen) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let has_seen = Arc::clone(&seen);
    let coarse = timers.timeout(move |_| has_seen.store(true, Ordering::SeqCst));
    // The check is in the callback: once this timer stops rearming, the timeout fires in any case.
    let ended = Arc::new(OnceLock::new());
    let ends = Arc::clone(&ended);
    let always = timers.hrtimer(move |fired| {
        let has_fired = seen.load(Ordering::SeqCst);
        if has_fired || begun.elapsed() >= Duration::from_secs(10) {
            ends.set(has_fired).unwrap();
        } else {
            fired.restart(Duration::ZERO);
        }
    });
    always.start(Duration::ZERO).unwrap();
    coarse.start(20 * MS).unwrap();
    wait_until("it has stopped rearming", || ended.get().is_some());
    assert!(ended.get() == Some(&true), "the timeout fired only when the other one had ended");
    assert!(timers.stats().bases[0].device.hangs == 0, "that is no hang");
}
