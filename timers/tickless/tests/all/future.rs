//! Sleeps, intervals and deadlines, on several runtimes and in corner cases.

use crate::support::woken::{calls, poll, woken};
use crate::support::{HOUR, Place, Rng, bases, rounds, seed, wait_until};
use async_executor::Executor;
use std::future::{pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickless::future::{self, Sleep, coarse_sleep, interval, sleep, timeout};
use tickless::periodic::Missed;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

/// Longer under Miri, so that a deadline is still in the future when its future is polled.
const MS: Duration = Duration::from_millis(if cfg!(miri) { 20 } else { 1 });

/// The work for each runtime: sleeps, an interval, and deadlines.
async fn work() {
    let begun = std::time::Instant::now();
    sleep(3 * MS).await;
    assert!(begun.elapsed() >= 3 * MS, "early");
    coarse_sleep(MS).await;
    future::sleep_until(future::now() + MS).await;
    let mut ticks = interval(MS);
    let first = ticks.tick().await;
    let second = ticks.tick().await;
    assert_eq!((second.due - first.due).as_nanos() as u64 % 1_000_000, 0);
    assert_eq!(timeout(HOUR, ready(5)).await, Ok(5));
    assert!(timeout(2 * MS, pending::<()>()).await.is_err());
    assert_eq!(timeout(HOUR, sleep(MS)).await, Ok(()));
}

#[test]
fn futures_run_on_any_runtime() {
    pollster::block_on(work());
    let executor = Executor::new();
    pollster::block_on(executor.run(async {
        let tasks: Vec<_> = (0..rounds(50)).map(|_| executor.spawn(work())).collect();
        for task in tasks {
            task.await;
        }
    }));
    let current = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for runtime in [&current, &many] {
        runtime.block_on(async {
            let tasks: Vec<_> = (0..rounds(50)).map(|_| tokio::spawn(work())).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn a_future_is_armed_by_its_first_poll() {
    let time = VirtualTime::new();
    let (count, waker) = woken();
    let mut late = pin!(time.timers().sleep(10 * MS));
    drop(time.timers().sleep(MS));
    assert_eq!(time.timers().stats().total().armed, 0);
    time.advance(20 * MS);
    assert!(poll(late.as_mut(), &waker).is_ready());
    assert_eq!((time.timers().stats().total().armed, count.count()), (0, 0));
}

/// A sleep of an hour may be late by 50 ms, one of 5 ms by 5 µs. Method: the least of several,
/// because other programs delay some.
#[test]
#[cfg_attr(miri, ignore = "measures real time")]
fn a_sleep_that_was_reset_has_the_slack_of_its_new_time() {
    let timers = bases(1);
    let late = |_| {
        let mut sleep = pin!(timers.sleep(HOUR));
        assert!(poll(sleep.as_mut(), &woken().1).is_pending());
        sleep.as_mut().reset(5 * MS);
        let deadline = sleep.deadline();
        pollster::block_on(sleep);
        timers.now() - deadline
    };
    let least = (0..10).map(late).min();
    assert!(least < Some(20 * MS), "{least:?}");
}

#[test]
fn intervals_keep_their_periods() {
    let (_, waker) = woken();
    let cx = &mut Context::from_waker(&waker);
    for (missed, expected) in [
        (Missed::Skip, [(10, 0), (20, 0), (30, 2), (60, 0)]),
        (Missed::Burst, [(10, 0), (20, 0), (30, 2), (40, 2)]),
        (Missed::Delay, [(10, 0), (20, 0), (30, 2), (65, 0)]),
    ] {
        let time = VirtualTime::with_builder(Timers::builder().bases(1), Instant::ZERO);
        let mut ticks = time.timers().interval(Duration::from_millis(10)).missed(missed);
        let mut seen = Vec::new();
        for step in [10, 20, 55, 65] {
            assert!(step == 65 || ticks.poll_tick(cx).is_pending());
            time.advance_to(Instant::from_millis(step));
            match ticks.poll_tick(cx) {
                Poll::Ready(tick) => seen.push((tick.due.as_nanos() / 1_000_000, tick.overruns)),
                Poll::Pending => panic!("{missed:?}: no tick at {step}"),
            }
        }
        assert_eq!(seen, expected, "{missed:?}");
    }
}

#[test]
fn a_timeout_polls_its_future_first() {
    let time = VirtualTime::new();
    let (_, waker) = woken();
    let by = time.now() + MS;
    let mut both = pin!(time.timers().timeout_after(MS, time.timers().sleep(MS)));
    assert!(poll(both.as_mut(), &waker).is_pending());
    time.advance(5 * MS);
    assert_eq!(poll(both.as_mut(), &waker), Poll::Ready(Ok(())), "both are ready");
    let mut never = pin!(time.timers().timeout_after(MS, pending::<()>()));
    assert!(poll(never.as_mut(), &waker).is_pending());
    time.advance(5 * MS);
    let deadline = by + 5 * MS;
    let Poll::Ready(Err(elapsed)) = poll(never.as_mut(), &waker) else { panic!("it has elapsed") };
    assert_eq!(elapsed.deadline, deadline);
    assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
}

/// Goal: W1 (never early) and no later than promised: neither the time before the first poll nor
/// the work in it moves a deadline, and a future that is ready makes no timers.
#[test]
fn timeouts_count_from_their_call() {
    let work = || async {
        std::thread::sleep(5 * MS);
        pending::<()>().await;
    };
    let before = future::now() + 3 * MS;
    let [one, other] = [timeout(3 * MS, work()), timeout(3 * MS, work())];
    let coarse = future::coarse_timeout(3 * MS, work());
    let reset = timeout(HOUR, ready(()));
    let after = future::now() + 3 * MS;
    std::thread::sleep(5 * MS);
    let ended = [one, other].map(|made| pollster::block_on(made).unwrap_err());
    for elapsed in ended.into_iter().chain([pollster::block_on(coarse).unwrap_err()]) {
        assert!((before..=after).contains(&elapsed.deadline), "{elapsed:?}");
        assert!(!elapsed.is_ambient && future::now() >= elapsed.deadline);
    }
    let mut reset = pin!(reset);
    reset.as_mut().reset(MS);
    assert_eq!(poll(reset, Waker::noop()), Poll::Ready(Ok(())));
    assert_eq!(pollster::block_on(timeout(Duration::MAX, ready(1))), Ok(1));
    assert!(pollster::block_on(timeout(Duration::ZERO, pending::<()>())).is_err());
}

#[test]
fn a_dropped_runtime_leaves_no_sleep_pending() {
    let timers = Timers::builder().bases(2).start().unwrap();
    let mut rng = Rng::new(seed("future", "a_dropped_runtime_leaves_no_sleep_pending"));
    for round in 0..rounds(60) {
        let runtime = match round % 2 {
            0 => tokio::runtime::Builder::new_current_thread().build().unwrap(),
            _ => tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap(),
        };
        for nth in 0..rounds(50) {
            let after = if nth % 2 == 0 { HOUR } else { Duration::from_micros(rng.below(500)) };
            runtime.spawn(timers.timeout_after(after, timers.sleep(HOUR)));
        }
        runtime.block_on(timers.sleep(Duration::from_micros(rng.below(500))));
        drop(runtime);
        assert_eq!(timers.stats().pending(), 0, "round {round}");
    }
    let executor = Executor::new();
    let task = executor.spawn(timers.sleep(HOUR));
    pollster::block_on(executor.tick());
    assert_eq!(timers.stats().pending(), 1);
    drop((task, executor));
    assert_eq!(timers.stats().pending(), 0);
    assert_eq!(timers.stats().panics, 0);
}

#[test]
#[cfg_attr(miri, ignore = "its clock counts steps, so the sleeps are due before they are armed")]
fn sleeps_fire_while_their_runtime_does_not_poll() {
    let (count, after) = (100, 100 * MS);
    let timers = Timers::builder().bases(1).start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tasks: Vec<_> = (0..count).map(|_| runtime.spawn(timers.sleep(after))).collect();
    let begun = std::time::Instant::now();
    runtime.block_on(async {
        while timers.stats().total().armed < count {
            tokio::task::yield_now().await;
        }
    });
    wait_until("all have fired unheard", || timers.stats().total().fired == count);
    pollster::block_on(timers.sleep(MS));
    assert!(tasks.iter().all(|task| !task.is_finished()), "no runtime polls them");
    let armed = timers.stats().total().armed;
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!(begun.elapsed() >= after);
    assert_eq!(timers.stats().total().armed, armed, "they were ready, and not armed again");
}

#[test]
fn a_waker_may_drop_the_last_handle() {
    for bases in [1, 3] {
        let timers = Timers::builder().bases(bases).start().unwrap();
        let (place, done) = (Place::<Pin<Box<Sleep>>>::empty(), Arc::new(AtomicBool::new(false)));
        let (own, through) = (place.clone(), Arc::clone(&done));
        let waker = calls(move || {
            drop(own.take());
            through.store(true, Ordering::SeqCst);
        });
        let mut sleep = Box::pin(timers.sleep(20 * MS));
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        place.put(sleep);
        drop(timers);
        // If the waker panics, or waits for its own thread, this line is not reached.
        wait_until("the waker is through", || done.load(Ordering::SeqCst));
    }
}

#[test]
fn pushing_out_does_not_touch_the_base() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let mut sleep = pin!(timers.coarse_sleep(HOUR));
    let (count, waker) = woken();
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    let before = timers.stats().total();
    for _ in 0..rounds(1_000) {
        sleep.as_mut().reset(HOUR);
    }
    assert_eq!(timers.stats().total(), before);
    let deadline = timers.now() + 40 * MS;
    sleep.as_mut().reset_at(timers.now() + 10 * MS);
    sleep.as_mut().reset_at(deadline);
    wait_until("it is woken", || count.count() == 1);
    assert!(timers.now() >= deadline && poll(sleep.as_mut(), &waker).is_ready());
    let total = timers.stats().total();
    assert_eq!(total.fired, before.fired + 1, "once, when it was due");
    assert!(timers.stats().bases[0].relocated > 0, "it was moved where it belonged");
}

/// Many timers that were pushed out expire at once, while their task resets them in the opposite
/// order, so that the driver and the task meet at one of them.
#[test]
fn a_reset_beside_an_expiry_leaves_no_task_asleep() {
    let timers = Timers::builder().bases(1).start().unwrap();
    for _ in 0..rounds(40) {
        let start = timers.now();
        // `None` if the machine is so busy that the deadline has passed already.
        let new = |_| {
            let (mut sleep, woken) = (Box::pin(timers.sleep_until(start + 30 * MS)), woken());
            poll(sleep.as_mut(), &woken.1).is_pending().then_some((sleep, woken))
        };
        let Some((first, _)) = new(0) else { continue };
        let mut sleeps: Vec<_> = (0..rounds(1_000)).filter_map(new).collect();
        for (sleep, _) in &mut sleeps {
            sleep.as_mut().reset_at(start + 40 * MS);
        }
        while !first.is_elapsed() {
            std::hint::spin_loop();
        }
        for (sleep, _) in sleeps.iter_mut().rev() {
            sleep.as_mut().reset_at(start + 50 * MS);
        }
        wait_until("every sleep wakes its task", || {
            sleeps.iter().all(|(_, (count, _))| count.count() == 1)
        });
    }
}

#[test]
fn reset_from_counts_from_the_given_time() {
    let time = VirtualTime::new();
    let begun = time.now();
    let (count, waker) = woken();
    let mut coarse = pin!(time.timers().coarse_sleep(HOUR));
    let mut precise = pin!(time.timers().sleep(HOUR));
    let mut other = pin!(time.timers().coarse_sleep(HOUR));
    assert!(poll(coarse.as_mut(), &waker).is_pending());
    assert!(poll(precise.as_mut(), &waker).is_pending());
    assert!(poll(other.as_mut(), &waker).is_pending());
    precise.as_mut().reset(2 * HOUR);
    coarse.as_mut().reset(2 * HOUR);
    assert_eq!((coarse.deadline(), precise.deadline()), (begun + 2 * HOUR, begun + 2 * HOUR));
    time.advance(30 * MS);
    for now in [begun, begun + 2 * HOUR, begun + 20 * MS] {
        coarse.as_mut().reset_from(now, 3 * HOUR);
        precise.as_mut().reset_from(now, 3 * HOUR);
        assert_eq!((coarse.deadline(), precise.deadline()), (now + 3 * HOUR, now + 3 * HOUR));
    }
    time.advance(HOUR - 30 * MS);
    assert!(poll(other.as_mut(), &waker).is_ready());
    time.advance(2 * HOUR + 20 * MS - Duration::from_nanos(1));
    assert!(poll(coarse.as_mut(), &waker).is_pending());
    assert!(poll(precise.as_mut(), &waker).is_pending());
    time.advance(Duration::from_nanos(1));
    assert!(poll(coarse.as_mut(), &waker).is_ready());
    assert!(poll(precise.as_mut(), &waker).is_ready());
    assert_eq!(count.count(), 3);
}

#[test]
fn labels_name_the_timers_of_futures() {
    let time = VirtualTime::new();
    let (_, waker) = woken();
    let label = || time.timers().leaks().iter().map(|leak| leak.label).collect::<Vec<_>>();
    let sleeps = async {
        time.timers().coarse_sleep(MS).await;
        time.timers().sleep(MS).await;
    };
    let mut named = pin!(future::labelled("two sleeps", sleeps));
    let mut other = pin!(time.timers().sleep(HOUR));
    assert!(poll(other.as_mut(), &waker).is_pending());
    for _ in 0..2 {
        assert!(poll(named.as_mut(), &waker).is_pending());
        let mut labels = label();
        labels.sort();
        assert_eq!(labels, ["tickless::future::Sleep", "two sleeps"]);
        time.advance(2 * MS);
    }
    assert!(poll(named.as_mut(), &waker).is_ready());
    assert_eq!(label(), ["tickless::future::Sleep"]);
}
