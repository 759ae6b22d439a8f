//! R5 to R8, R11 to R13 on each event device: driver threads that wait on a futex, and event loops
//! of the program that poll a descriptor or use a callback.

use crate::support::rig::{On, Rig};
use crate::support::{HOUR, MS, rounds, shared_count, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tickless::policy::Policy;
use tickless::stats::BaseStats;
use tickless::{HrTimer, Timers};

fn base(timers: &Timers) -> BaseStats {
    timers.stats().bases[0]
}

/// A timer that counts its expiries.
fn counted(timers: &Timers) -> (HrTimer, Arc<AtomicU64>) {
    let (fired, count) = shared_count();
    let timer = timers.hrtimer(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
    (timer, fired)
}

/// Goal: R2 (lazy removals), H1 (no system calls).
#[test]
fn an_earlier_deadline_wakes_the_driver() {
    for on in On::each() {
        let rig = Rig::start(on, Timers::builder());
        let far = rig.hrtimer(|_| {});
        far.start(HOUR).unwrap();
        let (near, fired) = counted(&rig);
        for round in 1..=rounds(50) {
            near.start(MS / 5).unwrap();
            wait_until(&format!("the near one fires on {on:?}"), || {
                fired.load(Ordering::SeqCst) == round
            });
        }
        assert_eq!(base(&rig).precise, 1, "{on:?}");
    }
}

/// Goal: R5 (one write per expiry), R6 (rearmed at every exit).
#[test]
fn an_expiry_writes_the_device_once() {
    for (on, panics) in On::each().flat_map(|on| [(on, false), (on, true)]) {
        let rig = Rig::start(on, Timers::builder());
        let pool: Vec<HrTimer> = (0..100).map(|_| rig.hrtimer(|_| {})).collect();
        let pool = Arc::new(pool);
        let armed = Arc::clone(&pool);
        let first = rig.hrtimer(move |_| {
            for (nth, timer) in armed.iter().enumerate() {
                timer.start(HOUR - MS * nth as u32).unwrap();
            }
            if panics {
                // `resume_unwind`, because `panic!` prints a message.
                std::panic::resume_unwind(Box::new(()));
            }
        });
        let before = base(&rig).device;
        first.start(MS).unwrap();
        wait_until("it has fired", || pool.iter().all(HrTimer::is_pending) && !first.is_active());
        wait_until("the expiry has ended", || rig.stats().bases[0].device.writes > before.writes);
        let after = base(&rig).device.since(before);
        // One write for the first timer and one for each event: some events may come too early.
        assert!(after.writes <= 1 + after.events, "{on:?} {after:?}");
        let (near, fired) = counted(&rig);
        near.start(MS).unwrap();
        wait_until("it is not deaf", || fired.load(Ordering::SeqCst) == 1);
    }
}

/// Goal: R7 (back-off).
#[test]
fn an_always_due_base_backs_off() {
    for on in On::each() {
        let rig = Rig::start(on, Timers::builder().back_off(3, MS * 5));
        let (runs, count) = shared_count();
        let storm = rig.hrtimer(move |fired| {
            count.fetch_add(1, Ordering::SeqCst);
            let then = fired.deadline();
            fired.restart_range(then, then);
        });
        for _ in 0..rounds(3) {
            let before = base(&rig).device.hangs;
            storm.start(Duration::ZERO).unwrap();
            wait_until("it hangs", || base(&rig).device.hangs > before + 5);
            storm.cancel_sync().unwrap();
            let (other, fired) = counted(&rig);
            other.start(MS).unwrap();
            wait_until("the other one fires", || fired.load(Ordering::SeqCst) == 1);
        }
        let (device, runs) = (base(&rig).device, runs.load(Ordering::SeqCst));
        println!("{on:?}: {runs} runs, {device:?}");
        // One pass fires a timer at most once, and an event runs three passes.
        assert!(runs <= 3 * device.events, "{on:?}: {runs} runs, {device:?}");
    }
}

/// Goal: R8 (no postponed event).
#[test]
fn arming_the_past_does_not_push_the_event_ahead() {
    for on in On::each() {
        let rig = Rig::start(on, Timers::builder().min_delta(MS * 2));
        let (timer, fired) = counted(&rig);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let passed = rig.now();
                    while !done.load(Ordering::Relaxed) {
                        timer.start_at(passed).unwrap();
                    }
                });
            }
            wait_until("it fires all the same", || fired.load(Ordering::SeqCst) > 10);
            // Wait for events, not expiries: one event may fire the timer more than once.
            wait_until("events are armed for the past", || base(&rig).device.forced >= 5);
            done.store(true, Ordering::Relaxed);
        });
        let device = base(&rig).device;
        // Very many armings, but at most two writes per event.
        assert!(device.writes <= 2 * device.events + 2, "{on:?} {device:?}");
    }
}

/// Goal: R11 (clamped deadlines).
#[test]
fn deadlines_are_clamped_and_kept() {
    for on in On::each() {
        let rig = Rig::start(on, Timers::builder().max_delta(MS * 2).min_delta(MS));
        let (timer, fired) = counted(&rig);
        let begin = rig.now();
        timer.start(MS * 150).unwrap();
        wait_until("the far one fires", || fired.load(Ordering::SeqCst) == 1);
        assert!(rig.now() - begin >= MS * 150);
        let looks = base(&rig).device;
        println!("{on:?}: {looks:?}");
        assert!(looks.spurious >= 5, "{on:?}: it was to look every other ms: {looks:?}");
        wait_until("the expiry has ended", || base(&rig).device.writes > 0 && !timer.is_active());
        let begin = rig.now();
        timer.start(Duration::ZERO).unwrap();
        wait_until("the near one fires", || fired.load(Ordering::SeqCst) == 2);
        assert!(base(&rig).device.forced > 0 && rig.now() >= begin);
    }
}

/// Goal: R12 (rearm policies) in system calls: under `Eager` each guard that is armed and cancelled
/// writes the device twice, under `Lazy` never. With a timerfd each write is one call; with a futex
/// only the wakeup of a sleeping driver is.
#[test]
fn policies_differ_in_system_calls() {
    const PAIRS: u64 = 1000;
    for (on, policy) in On::each().flat_map(|on| Policy::ALL.map(|policy| (on, policy))) {
        let rig = Rig::start(on, Timers::builder().policy(policy));
        let guard = rig.hrtimer(|_| {});
        guard.start(HOUR).unwrap();
        let before = base(&rig);
        for _ in 0..PAIRS {
            guard.start(HOUR).unwrap();
            guard.cancel();
        }
        let after = base(&rig);
        let device = after.device.since(before.device);
        let calls = after.device_calls - before.device_calls;
        println!("{on:?} {policy:?}: {} writes, {calls} calls", device.writes);
        match policy {
            // As often as the driver wakes by itself, which is hardly ever.
            Policy::Lazy => assert!(device.writes <= device.events, "{on:?} {device:?}"),
            // Two for each pair, except those that a running expiry combined into one.
            _ => assert!(device.writes >= PAIRS, "{on:?} {policy:?} {device:?}"),
        }
        match on {
            On::Futex | On::Called => assert_eq!(after.device_calls, 0),
            On::Polled => {
                assert_eq!(after.device_calls, after.device.writes, "{on:?} {policy:?}");
            }
        }
    }
}
