//! Timers in an event loop of the program: its descriptor, its callback, arming from other threads,
//! and its end. (`devices.rs` tests what all devices have in common.)

use crate::support::{HOUR, MS, Place, shared_count, wait_until};
use mio::unix::SourceFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::driver::{CpuId, EventLoopDriver};
use tickless::policy::Policy;
use tickless::{HrTimer, Timers};

fn start() -> (Timers, EventLoopDriver) {
    Timers::builder().start_in_loop().unwrap()
}

/// Returns whether the driver's descriptor becomes readable within this time.
fn is_readable(driver: &EventLoopDriver, within: Duration) -> bool {
    let timeout = Timespec::try_from(within).unwrap();
    let mut fds = [PollFd::new(driver, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).unwrap() > 0
}

#[test]
fn the_descriptor_is_readable_when_something_is_due() {
    let (timers, mut driver) = start();
    let timer = timers.hrtimer(|_| {});
    assert!(!is_readable(&driver, MS) && driver.next_event().is_none());
    timer.start(HOUR).unwrap();
    assert!(!is_readable(&driver, MS) && driver.run() == 0);
    std::thread::scope(|s| {
        s.spawn(|| timer.start(MS * 3).unwrap());
    });
    assert!(is_readable(&driver, crate::support::PATIENCE));
    // The descriptor follows the system's clock, which may be a moment ahead of the timers'.
    wait_until("it runs", || driver.run() == 1);
    assert!(!is_readable(&driver, MS * 5), "everything has run");
    assert_eq!((driver.next_event(), driver.timeout()), (None, None));
    // Due but cancelled: the loop wakes once, and fires nothing.
    timer.start(Duration::ZERO).unwrap();
    timer.cancel();
    assert!(is_readable(&driver, crate::support::PATIENCE));
    assert_eq!(driver.run(), 0);
    assert!(!is_readable(&driver, MS * 5));
}

#[test]
fn a_run_with_nothing_due_makes_no_system_call() {
    let (timers, mut driver) = start();
    let timer = timers.hrtimer(|_| {});
    timer.start(HOUR).unwrap();
    let before = timers.stats().bases[0];
    for _ in 0..1000 {
        assert_eq!(driver.run(), 0);
        assert!(driver.timeout() > Some(HOUR / 2));
    }
    assert_eq!(timers.stats().bases[0], before, "no device write and no call");
    assert_eq!((before.device.writes, before.device_calls), (1, 1));
    assert_eq!((before.sleeps, before.wake_calls), (0, 0));
}

/// Goal: with mio, which is edge-triggered, no expiry is lost over many wakeups.
#[test]
fn an_edge_triggered_loop_misses_no_expiry() {
    const BEATS: u64 = 200;
    let (timers, mut driver) = start();
    let (beats, count) = shared_count();
    let heart = timers.periodic(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    heart.start(MS / 2).unwrap();
    let mut poll = mio::Poll::new().unwrap();
    let raw = driver.as_raw_fd();
    let interest = mio::Interest::READABLE;
    poll.registry().register(&mut SourceFd(&raw), mio::Token(7), interest).unwrap();
    let mut events = mio::Events::with_capacity(4);
    while beats.load(Ordering::Relaxed) < BEATS {
        poll.poll(&mut events, Some(crate::support::PATIENCE)).unwrap();
        assert!(!events.is_empty(), "no event for a long time");
        driver.run();
    }
}

#[test]
fn an_earlier_deadline_calls_the_callback() {
    let (calls, count) = shared_count();
    let (timers, mut driver) = Timers::builder()
        .policy(Policy::Lazy)
        .start_in_loop_with(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
    let calls = || calls.load(Ordering::SeqCst);
    let timer = timers.hrtimer(|_| {});
    timer.start(HOUR).unwrap();
    assert_eq!(calls(), 0, "the loop has not asked yet");
    assert!(driver.timeout() > Some(HOUR / 2));
    timer.start(HOUR * 2).unwrap();
    assert_eq!(calls(), 0, "that is later");
    std::thread::scope(|s| {
        s.spawn(|| timer.start(HOUR / 4).unwrap());
    });
    assert_eq!(calls(), 1);
    timer.start(HOUR / 8).unwrap();
    assert_eq!(calls(), 1, "it has been called and will ask");
    assert!(driver.timeout() < Some(HOUR / 8));
    timer.start(HOUR / 16).unwrap();
    assert_eq!(calls(), 2);
    assert_eq!(driver.run(), 0);
    timer.start(Duration::ZERO).unwrap();
    assert_eq!(calls(), 2, "the loop is at work");
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(driver.run(), 1);
    assert_eq!(timers.stats().bases[0].wake_calls, 2);
    assert_eq!(driver.timeout(), None);
}

#[test]
fn a_later_deadline_does_not_call_the_callback() {
    let (calls, count) = shared_count();
    let builder = Timers::builder().policy(Policy::Eager);
    let (timers, mut driver) =
        builder.start_in_loop_with(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
    let (near, far) = (timers.hrtimer(|_| {}), timers.hrtimer(|_| {}));
    near.start(HOUR).unwrap();
    far.start(HOUR * 2).unwrap();
    assert!(driver.timeout() < Some(HOUR));
    near.cancel();
    assert!(driver.timeout() > Some(HOUR));
    far.cancel();
    assert_eq!((driver.timeout(), calls.load(Ordering::SeqCst)), (None, 0));
}

/// Goal: H4 (forks, exits, drops).
#[test]
fn loop_handles_may_be_dropped_in_any_order() {
    let (timers, driver) = start();
    let timer = timers.hrtimer(|_| {});
    timer.start(MS).unwrap();
    drop(driver);
    std::thread::sleep(MS * 5);
    assert!(timer.is_pending());
    timer.start(MS).unwrap();
    assert_eq!(timer.cancel_sync(), Ok(tickless::callback::Cancel::Pending));
    timer.start(MS).unwrap();
    drop((timers, timer));

    // On a clock with the kernel's zero, too.
    let (timers, mut driver) = Timers::builder().system_clock().start_in_loop().unwrap();
    let timer = timers.hrtimer(|_| {});
    timer.start(HOUR).unwrap();
    drop(timers);
    assert!(!driver.is_over() && !is_readable(&driver, MS));
    drop(timer);
    assert!(driver.is_over() && is_readable(&driver, crate::support::PATIENCE));
    assert_eq!(driver.run(), 0);

    // The last timer, and with it the set, is dropped in its own callback.
    let (timers, mut driver) = start();
    let (place, own) = Place::<HrTimer>::shared();
    place.put(timers.hrtimer(move |_| drop(own.take())));
    place.with(|timer| timer.start(Duration::ZERO)).unwrap();
    drop(timers);
    wait_until("it fires", || driver.run() == 1);
    assert!(driver.is_over());
}

#[test]
fn each_base_may_have_its_own_loop() {
    let (timers, drivers) = Timers::builder().bases(3).start_in_loops().unwrap();
    assert_eq!(drivers.len(), 3);
    let fired: Arc<[AtomicU64; 3]> = Arc::default();
    let pinned = |base: u16| {
        let fired = Arc::clone(&fired);
        let count = move |f: &mut tickless::Fired<'_>| {
            fired[base as usize].fetch_add(u64::from(f.base() == CpuId(base)), Ordering::SeqCst);
        };
        timers.hrtimer(count).pinned(CpuId(base))
    };
    let all: Vec<HrTimer> = (0..3).map(pinned).collect();
    std::thread::scope(|s| {
        for mut driver in drivers {
            s.spawn(move || {
                while !driver.is_over() {
                    poll(&mut [PollFd::new(&driver, PollFlags::IN)], None).unwrap();
                    driver.run();
                }
            });
        }
        for round in 1..=20 {
            all.iter().for_each(|timer| assert!(timer.start(MS / 4).is_ok()));
            wait_until("all fire", || fired.iter().all(|f| f.load(Ordering::SeqCst) == round));
        }
        drop((all, timers));
    });
}

/// Goal: R7 (back-off).
#[test]
fn an_always_due_callback_does_not_block_the_loop() {
    let (timers, mut driver) = start();
    let storm = timers.hrtimer(|fired| {
        let then = fired.deadline();
        fired.restart_range(then, then);
    });
    storm.start(Duration::ZERO).unwrap();
    for _ in 0..5 {
        assert!(is_readable(&driver, crate::support::PATIENCE));
        assert!(driver.run() <= 3, "passes to a run");
    }
    assert!(timers.stats().bases[0].device.hangs > 0);
}
