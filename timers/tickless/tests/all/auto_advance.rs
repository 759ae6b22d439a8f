//! Virtual time that advances automatically, drives several sets, and shuffles.

use crate::support::histories::{OnPurpose, end_after, hush};
use crate::support::{HOUR, Log, MS, Rng, SECOND, child_test, rounds, seed};
use std::collections::BTreeSet;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tickless::callback::Cancel;
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};
use tokio::sync::oneshot;

/// Goal: if a thread asks for a step while another one makes a step, its new timer fires.
#[test]
fn a_step_that_misses_a_timer_is_repeated() {
    // A step looks at one base after another, so it mostly misses a timer of the first one.
    let time = VirtualTime::with_builder(Timers::builder().bases(100), Instant::ZERO);
    let (meet, rounds) = (Barrier::new(2), rounds(10_000));
    let timer = time.timers().hrtimer(|_| ()).pinned(CpuId(0));
    let missed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                meet.wait();
                time.idle();
                meet.wait();
            }
        });
        let is_missed = |_: &_| {
            meet.wait();
            timer.start(SECOND).unwrap();
            time.idle();
            meet.wait();
            timer.cancel() == Cancel::Pending
        };
        (0..rounds).filter(is_missed).count()
    });
    assert_eq!(missed, 0);
}

#[test]
fn the_clock_does_not_advance_while_work_holds_a_guard() {
    let time = VirtualTime::new();
    let start = time.now();
    let (tx, rx) = oneshot::channel();
    let guard = time.busy();
    let clock = time.clone();
    let worker = std::thread::spawn(move || {
        let _guard = guard;
        let begun = std::time::Instant::now();
        while begun.elapsed() < 30 * MS {
            assert_eq!(clock.now(), start, "it moved");
            std::thread::yield_now();
        }
        tx.send("done").unwrap();
    });
    let answer = time.block_on(time.timers().timeout_after(SECOND, rx));
    assert_eq!((answer, time.now()), (Ok(Ok("done")), start));
    worker.join().unwrap();

    // A future in `outside` stops the clock, too.
    let (tx, rx) = oneshot::channel();
    let io = std::thread::spawn(move || {
        std::thread::sleep(20 * MS);
        tx.send("read").unwrap();
    });
    let read = time.block_on(time.timers().timeout_after(SECOND, time.outside(rx)));
    assert_eq!((read, time.now()), (Ok(Ok("read")), start));
    io.join().unwrap();

    // The clock does not know of waits without a guard: the deadline passes.
    let late = time.block_on(time.timers().timeout_after(SECOND, pending::<()>()));
    assert!(late.is_err() && time.now() > start);
}

#[test]
fn the_clock_advances_when_all_blocked_threads_wait() {
    let time = VirtualTime::new();
    let start = time.now();
    let log = Log::new();
    std::thread::scope(|s| {
        // Every guard exists before the first thread starts, so no thread advances the clock alone.
        let begin = [time.busy(), time.busy(), time.busy()];
        for (thread, begin) in begin.into_iter().enumerate() {
            let (time, log) = (time.clone(), log.clone());
            s.spawn(move || {
                let timers = time.timers();
                time.block_on(async {
                    drop(begin);
                    for round in 1..=rounds(300) as u32 {
                        let at = start + (thread as u32 + 2) * round * SECOND;
                        timers.sleep_until(at).slack(Duration::ZERO).await;
                        assert_eq!(time.now(), at, "thread {thread}");
                        log.push(at);
                    }
                });
            });
        }
    });
    let woken = log.take();
    assert_eq!(woken.len() as u64, 3 * rounds(300));
    assert!(woken.is_sorted(), "the clock never advances past a busy thread");
}

#[test]
fn sleeping_threads_advance_the_clock() {
    let time = VirtualTime::new();
    let (start, begun) = (time.now(), std::time::Instant::now());
    let set_up = time.busy();
    let auto = time.auto_advance();
    let woken = AtomicU64::new(0);
    std::thread::scope(|s| {
        for thread in 1..=4 {
            let (mut me, time, woken) = (time.busy(), &time, &woken);
            s.spawn(move || {
                let mut at = start;
                for _ in 0..rounds(200) {
                    me.sleep(thread * HOUR);
                    at += thread * HOUR;
                    assert_eq!(time.now(), at);
                    woken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        drop(set_up);
    });
    assert_eq!(woken.load(Ordering::Relaxed), 4 * rounds(200));
    assert_eq!(time.now(), start + HOUR * 4 * rounds(200) as u32);
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(auto);
    time.assert_idle();
}

#[test]
fn a_guard_in_a_message_holds_the_clock() {
    let time = VirtualTime::new();
    let (start, (tx, rx)) = (time.now(), channel());
    let mut me = time.busy();
    let _auto = time.auto_advance();
    std::thread::scope(|s| {
        let (mut other, time) = (time.busy(), &time);
        s.spawn(move || {
            other.sleep(HOUR);
            tx.send(time.busy()).unwrap();
            other.sleep(HOUR);
        });
        let along = me.wait(|| rx.recv().unwrap());
        assert_eq!(time.now(), start + HOUR);
        drop(along);
        me.sleep(2 * HOUR);
        assert_eq!(time.now(), start + 3 * HOUR);
    });
}

#[test]
fn explicit_and_automatic_advances_take_turns() {
    let time = VirtualTime::new();
    let start = time.now();
    let calls = Arc::new(AtomicU64::new(0));
    let (counted, last) = (Arc::clone(&calls), AtomicU64::new(0));
    let every = time.timers().periodic(move |period| {
        assert_eq!(period.now(), period.deadline(), "at its time");
        assert!(
            last.swap(period.now().as_nanos(), Ordering::Relaxed) < period.now().as_nanos(),
            "in order"
        );
        counted.fetch_add(1, Ordering::Relaxed);
    });
    every.start(SECOND).unwrap();
    let auto = time.auto_advance();
    (0..100).for_each(|_| time.advance(10 * SECOND));
    drop(auto);
    let passed = time.now() - start;
    assert!(passed >= 1000 * SECOND);
    assert_eq!(calls.load(Ordering::Relaxed), passed.as_secs());
    assert_eq!(time.timers().stats().panics, 0);
}

#[test]
fn busy_stops_the_clock_at_once() {
    let time = VirtualTime::new();
    // The callback takes virtual and real time in turn, so `busy` can be called amid a step.
    let clock = time.clone();
    let every = time.timers().periodic(move |_| {
        for _ in 0..5 {
            clock.advance(MS);
            std::thread::yield_now();
        }
    });
    every.start(10 * MS).unwrap();
    let _auto = time.auto_advance();
    for _ in 0..rounds(2_000) {
        let guard = time.busy();
        let now = time.now();
        std::thread::yield_now();
        assert_eq!(time.now(), now);
        drop(guard);
    }
}

#[test]
fn several_sets_share_one_clock() {
    let time = VirtualTime::new();
    let other = time.add_timers(Timers::builder().bases(2));
    let log = Log::new();
    let start = |timers: &Timers, ms: u32, what: &'static str| {
        let log = log.clone();
        let timer = timers.hrtimer(move |fired| log.push((what, fired.now())));
        let timer = timer.pinned(CpuId(0));
        timer.start(ms * MS).unwrap();
        timer
    };
    let begin = time.now();
    let _timers = [
        start(&other, 3, "b3"),
        start(time.timers(), 3, "a3"),
        start(&other, 1, "b1"),
        start(time.timers(), 2, "a2"),
    ];
    assert_eq!(time.next_event(), Some(begin + MS));
    assert_eq!(other.now(), begin);
    time.advance(5 * MS);
    let expected = [("b1", 1), ("a2", 2), ("a3", 3), ("b3", 3)];
    assert_eq!(log.take(), expected.map(|(what, ms)| (what, begin + ms * MS)));
    let left = start(&other, 1, "left");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| time.assert_idle()));
    assert!(result.is_err(), "the other's leaks count");
    drop(left);
    time.assert_idle();
}

#[test]
fn callbacks_of_several_sets_do_not_nest() {
    let time = VirtualTime::new();
    let other = time.add_timers(Timers::builder().bases(1));
    let (log, clock) = (Log::new(), time.clone());
    let (first, second) = (log.clone(), log.clone());
    let inner = other.hrtimer(move |fired| second.push(("inner", fired.late_by())));
    let outer = time.timers().hrtimer(move |_| {
        inner.start(MS).unwrap();
        clock.advance(3 * MS);
        first.push(("outer", 3 * MS));
    });
    outer.start(MS).unwrap();
    time.advance(10 * MS);
    assert_eq!(log.take(), [("outer", 3 * MS), ("inner", 2 * MS)]);
}

/// Goal: one seed always gives one order of ties, other seeds give very many orders, and each pair
/// of timers occurs in both orders; timers that do not tie fire in order.
#[test]
fn ties_are_shuffled_by_the_seed() {
    let run = |seed| {
        let time = VirtualTime::shuffled_with_seed(seed);
        let log = Log::new();
        let timers: Vec<_> = (0..6)
            .map(|nth| {
                let log = log.clone();
                let timer = time.timers().hrtimer(move |_| log.push(nth));
                timer.start(if nth == 5 { 2 * SECOND } else { SECOND }).unwrap();
                timer
            })
            .collect();
        time.advance(HOUR);
        drop(timers);
        assert_eq!(time.seed(), Some(seed));
        log.take()
    };
    let orders: BTreeSet<Vec<i32>> = (0..200).map(run).collect();
    assert!(orders.len() > 40, "{} of 120 orders", orders.len());
    assert!(orders.iter().all(|order| order.len() == 6 && order[5] == 5));
    for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let is_before = |order: &Vec<i32>| {
            order.iter().position(|n| *n == a) < order.iter().position(|n| *n == b)
        };
        assert!(orders.iter().any(is_before) && !orders.iter().all(is_before), "{a} and {b}");
    }
    assert!((0..20).all(|seed| run(seed) == run(seed)));
}

#[test]
fn a_failure_prints_its_seed() {
    const ROLE: &str = "TICKLESS_TEST_FAILS_WITH_SEED";
    if std::env::var_os(ROLE).is_some() {
        let time = VirtualTime::shuffled();
        let _another = time.clone();
        panic!("on purpose, with {:?}", time.seed());
    }
    let mut child = child_test("auto_advance::a_failure_prints_its_seed", ROLE, "");
    let output = child.env("TICKLESS_SEED", "4711").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(stderr.matches("TICKLESS_SEED=4711").count(), 1, "{stderr}");
    assert!(stderr.contains("on purpose, with Some(4711)"), "{stderr}");
    let output = child.env("TICKLESS_SEED", "0x12").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("TICKLESS_SEED is \"0x12\", not a number"), "{stderr}");
}

#[test]
fn nested_block_on_advances_the_clock() {
    let time = VirtualTime::new();
    let begun = time.now();
    let (done, is_done) = std::sync::mpsc::channel();
    let inner = time.clone();
    std::thread::spawn(move || {
        let timers = inner.timers().clone();
        inner.block_on(async {
            timers.sleep(HOUR).await;
            inner.block_on(timers.sleep(HOUR));
            inner.block_on(async { inner.block_on(timers.sleep(HOUR)) });
            timers.sleep(HOUR).await;
        });
        // Nested calls count as busy once: a guard holds the clock, until it is dropped.
        inner.block_on(timers.sleep(HOUR));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(crate::support::PATIENCE).expect("the clock moves");
    let slept = time.now() - begun;
    assert!(slept >= 5 * HOUR && slept < 6 * HOUR, "{slept:?}");
}

/// Goal: A5 (counts come back on every way out): the clock panics inside nested calls.
#[test]
fn a_panic_of_the_clock_leaves_it_usable() {
    let time = VirtualTime::new();
    let forever = time.timers().hrtimer(|fired| fired.restart(Duration::ZERO));
    forever.start(MS).unwrap();
    fn nested(time: &VirtualTime, depth: u32) {
        let inner = async || match depth {
            1 => time.timers().sleep(SECOND).await,
            _ => nested(time, depth - 1),
        };
        time.block_on(inner());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| nested(&time, 3))).is_err());
    let mut busy = time.busy();
    let waited = || busy.wait(|| panic!("while it is not busy"));
    assert!(catch_unwind(AssertUnwindSafe(waited)).is_err());
    assert!(!time.idle(), "the guard still counts");
    drop(busy);
    drop(forever);
    let begun = time.now();
    time.block_on(time.timers().sleep(SECOND));
    assert_eq!(time.now(), begun + SECOND);
}

#[test]
fn block_on_in_a_callback_panics() {
    let time = VirtualTime::new();
    let inner = time.clone();
    let timer = time.timers().hrtimer(move |_| {
        inner.block_on(std::future::ready(()));
        inner.block_on(inner.timers().sleep(HOUR));
    });
    timer.start(HOUR).unwrap();
    time.advance(2 * HOUR);
    assert_eq!(time.timers().stats().panics, 1);
    time.block_on(time.timers().sleep(HOUR));
}

/// Goal: whatever threads do with one clock at once, each arming ends once and not early, each wait
/// ends, and nothing stays pending. Callbacks panic, and move the clock.
#[test]
fn many_threads_use_one_clock() {
    hush();
    let mut rng = Rng::new(seed("auto_advance", "many_threads_use_one_clock"));
    let end = end_after(SECOND);
    while std::time::Instant::now() < end {
        let builder = Timers::builder().bases(2).on_panic(|panic| assert!(panic.is::<OnPurpose>()));
        let builder = if rng.below(2) == 0 { builder.expiry_threads() } else { builder };
        let time = VirtualTime::with_builder(builder, Instant::from_secs(1));
        let auto = (rng.below(2) == 0).then(|| time.auto_advance());
        let work = |mut rng: Rng, auto: bool| {
            let (mut time, calls) = (time.clone(), Arc::new(AtomicU64::new(0)));
            let (clock, count) = (time.clone(), Arc::clone(&calls));
            let timer =
                time.timers().timeout(move |_| match count.fetch_add(1, Ordering::Relaxed) % 7 {
                    1 => clock.advance(MS),
                    2 => clock.block_on(async {}),
                    3 => drop(clock.busy()),
                    4 => drop(clock.clone()),
                    5 => std::panic::panic_any(OnPurpose),
                    _ => {}
                });
            let (mut armings, mut cancelled) = (0, 0);
            for _ in 0..rounds(300) {
                let (after, now) = (Duration::from_nanos(rng.of_any_size(35)), time.now());
                match rng.below(12) {
                    0 => time.advance(after),
                    1 => drop(time.advance_to_next()),
                    2 => time.suspend(after),
                    3 => time.set_realtime(Instant::from_nanos(rng.of_any_size(60))),
                    // Only an automatic clock or a `block_on` ends it.
                    4 if auto => time.busy().sleep(after),
                    5 => time.busy().wait(std::thread::yield_now),
                    6 | 7 => {
                        time.block_on(time.timers().sleep(after).slack(Duration::ZERO));
                        assert!(time.now() >= now + after, "early");
                    }
                    8 => {
                        let other = time.add_timers(Timers::builder().bases(1));
                        let ended = time.block_on(other.timeout_after(after, pending::<()>()));
                        assert!(ended.is_err());
                    }
                    9 => time = time.clone(),
                    _ => {
                        let found = timer.cancel_sync().unwrap();
                        cancelled += u64::from(found == Cancel::Pending);
                        assert_eq!(calls.load(Ordering::Relaxed) + cancelled, armings);
                        timer.start(after).unwrap();
                        armings += 1;
                    }
                }
            }
            timer.cancel_sync().unwrap();
        };
        std::thread::scope(|s| {
            for rng in [(); 4].map(|()| Rng::new(rng.next())) {
                s.spawn(|| work(rng, auto.is_some()));
            }
        });
        drop(auto);
        time.assert_idle();
    }
}
