//! The base of a timer, deferrable timers, and `reduce`, which only makes a deadline earlier.

use crate::support::{AnyTimer, HOUR, Log, MS, PATIENCE, wait_until};
use std::sync::mpsc::channel;
use std::time::Duration;
use tickless::callback::{StartError, Started};
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

#[test]
fn pinned_timers_fire_on_their_base() {
    let time = VirtualTime::with_builder(Timers::builder().bases(4), Instant::from_secs(1));
    let log = Log::new();
    for base in [3, 0, 2, 1].map(CpuId) {
        let (coarse, precise) = (log.clone(), log.clone());
        let mut left = 3;
        let timeout = time.timers().timeout(move |f| {
            coarse.push(f.base());
            left -= 1;
            if left > 0 {
                f.restart(MS);
            }
        });
        let hrtimer = time.timers().hrtimer(move |f| precise.push(f.base()));
        let (timeout, hrtimer) = (timeout.pinned(base), hrtimer.pinned(base));
        timeout.start(MS).unwrap();
        hrtimer.start(MS).unwrap();
        let stats = time.timers().stats();
        assert_eq!((stats.bases[base.index()].coarse, stats.bases[base.index()].precise), (1, 1));
        assert_eq!(stats.pending(), 2);
        time.advance(MS * 10);
        assert_eq!(log.take(), [base; 4]);
        let nowhere = timeout.pinned(CpuId(4));
        assert_eq!(nowhere.start(MS), Err(StartError::NoSuchBase(CpuId(4))));
    }
}

#[test]
fn deferrable_timeouts_wake_no_driver() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let anchor = timers.hrtimer(|_| {});
    anchor.start(HOUR).unwrap();
    let asleep = || {
        let mut before = timers.stats();
        wait_until("the driver sleeps", || {
            std::thread::sleep(MS * 10);
            let last = std::mem::replace(&mut before, timers.stats());
            last.bases == before.bases
        });
        before
    };
    // Wait until the drivers sleep: a late wakeup for the anchor timer would fire some timeouts.
    asleep();
    let (tx, rx) = channel();
    let all: Vec<_> = (0..100u32)
        .map(|at| {
            let tx = tx.clone();
            let timer = timers.timeout(move |_| tx.send(at).unwrap()).deferrable();
            timer.start(MS * (at % 7)).unwrap();
            timer
        })
        .collect();
    let before = asleep();
    std::thread::sleep(MS * 60);
    let after = timers.stats();
    let device = |stats: &tickless::stats::Stats| (stats.bases[0].sleeps, stats.bases[0].device);
    assert_eq!(device(&after), device(&before), "it has slept all the time");
    assert_eq!((after.pending(), rx.try_recv().is_err()), (101, true));
    let event = timers.hrtimer(|_| {});
    event.start(MS).unwrap();
    let mut fired: Vec<u32> = all.iter().map(|_| rx.recv_timeout(PATIENCE).unwrap()).collect();
    fired.sort();
    assert_eq!(fired, (0..100).collect::<Vec<_>>());
}

#[test]
fn reduce_never_makes_a_timer_later() {
    let time = VirtualTime::new();
    let (log, written) = Log::shared();
    let callback = move |f: &mut tickless::Fired<'_>| written.push(f.deadline());
    for timer in AnyTimer::both(time.timers(), callback) {
        let (begin, reduce) = (time.now(), |after| timer.reduce(after));
        assert_eq!(reduce(MS * 50), Ok(Started::Idle));
        assert_eq!(reduce(MS * 60), Ok(Started::Kept));
        assert_eq!(reduce(MS * 20), Ok(Started::Pending));
        time.advance(MS * 5);
        assert_eq!(reduce(MS * 20), Ok(Started::Kept), "20 from now is later");
        assert_eq!(reduce(MS * 10), Ok(Started::Pending));
        time.advance(HOUR);
        assert_eq!(log.take(), [begin + MS * 15]);
    }
}

#[test]
fn slack_applies_to_later_armings() {
    const SLACK: Duration = Duration::from_nanos(3_000 * 1_024);
    let time = VirtualTime::new();
    let (log, written) = Log::shared();
    let timer = time.timers().hrtimer(move |f| written.push((f.deadline(), f.hard_deadline())));
    let timer = timer.slack(SLACK);
    let begin = time.now();
    let expect = |soft: Duration, slack: Duration| {
        time.advance(HOUR);
        assert_eq!(log.take(), [(begin + soft, begin + soft + slack)]);
    };
    timer.start(MS).unwrap();
    expect(MS, SLACK);
    timer.start_from(time.now() - 2 * MS, 5 * MS).unwrap();
    expect(HOUR + 3 * MS, SLACK);
    timer.start_at(time.now() + MS).unwrap();
    expect(2 * HOUR + MS, SLACK);
    timer.start_range(time.now() + MS, time.now() + 2 * MS).unwrap();
    expect(3 * HOUR + MS, MS);
}

/// Goal: a driver is started when a timer is first armed on its base: a set of many bases starts
/// two threads, and each base that is used adds one. The last replaces the starting one.
#[test]
fn drivers_start_with_the_first_timer_of_their_base() {
    let begun = std::time::Instant::now();
    let timers = Timers::builder().bases(480).start().unwrap();
    println!("480 bases start in {:?}", begun.elapsed());
    let sleeping = |timers: &Timers| timers.stats().bases.iter().filter(|b| b.sleeps > 0).count();
    wait_until("the first driver sleeps", || sleeping(&timers) == 1);
    let (tx, rx) = channel();
    let pinned = |base| {
        let tx = tx.clone();
        let timer = timers.hrtimer(move |fired| tx.send(fired.base()).unwrap());
        timer.pinned(CpuId(base))
    };
    for base in [300, 7, 300, 479] {
        let timer = pinned(base);
        timer.start(MS).unwrap();
        assert_eq!(rx.recv_timeout(PATIENCE), Ok(CpuId(base)));
    }
    wait_until("their drivers sleep", || sleeping(&timers) == 4);
    let small = Timers::builder().bases(3).start().unwrap();
    let both = [2, 1].map(|base| small.timeout(|_| {}).pinned(CpuId(base)));
    both.iter().for_each(|timer| assert!(timer.start(HOUR).is_ok()));
    wait_until("all drivers sleep", || sleeping(&small) == 3);
}
