//! Differences of the portable platform from Linux: timers on realtime check their clock once a
//! second, because the system does not report steps; and a base belongs to threads, not to a CPU.

use crate::support::wait_until;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tickless::Timers;
use tickless::callback::Cancel;
use tickless::clock::{TimeBase, realtime};

const MS: Duration = Duration::from_millis(1);

/// Goal: an alarm on realtime is not early by that clock, and its callback sees the deadline with
/// which it was armed.
#[test]
fn an_alarm_on_realtime_is_not_early() {
    let timers = Timers::process().unwrap();
    let rang = Arc::new(AtomicU64::new(0));
    let at = Arc::clone(&rang);
    let alarm = timers.clock_timer(TimeBase::Realtime, move |fired| {
        assert!(fired.now() >= fired.deadline());
        at.store(fired.now().as_nanos(), Ordering::SeqCst);
    });
    let due = realtime(SystemTime::now() + MS * 30);
    alarm.start_at(due).unwrap();
    assert!(timers.clock_watch_fallback().is_none(), "nothing was refused");
    wait_until("the alarm rings", || rang.load(Ordering::SeqCst) > 0);
    assert!(rang.load(Ordering::SeqCst) >= due.as_nanos());
    alarm.start(Duration::from_secs(3600)).unwrap();
    assert_eq!(alarm.cancel_sync(), Ok(Cancel::Pending));
}

/// Goal: timers that many threads arm all fire, none early by the standard library's clock.
#[test]
fn none_is_early_by_instant() {
    let timers = Timers::process().unwrap();
    let late = Arc::new(AtomicU64::new(0));
    std::thread::scope(|s| {
        for thread in 0..4u32 {
            let (timers, late) = (timers.clone(), Arc::clone(&late));
            s.spawn(move || {
                for round in 0..50u32 {
                    let (send, receive) = std::sync::mpsc::channel();
                    let timer = timers.hrtimer(move |_| send.send(Instant::now()).unwrap_or(()));
                    let after = Duration::from_micros(u64::from(50 + 331 * round % 2_000 + thread));
                    let armed = Instant::now();
                    timer.start(after).unwrap();
                    let fired = receive.recv().expect("it fires");
                    assert!(fired >= armed + after, "early");
                    late.fetch_max((fired - armed - after).as_nanos() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    println!("late by {} us at most", late.load(Ordering::Relaxed) / 1_000);
}
