//! The timers of tokio's runtimes: with several runtimes, when one ends or is blocked, on a clock
//! that is paused, and with a sleep of tokio's as the event device.

use crate::ours::turns::turns;
use crate::{HOUR, alone, current_thread, multi_thread, paused_runtime};
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::mpsc::channel;
use std::time::Duration;
use tickless::clock::TimeBase;
use tickless::future::{self, TimerSource};
use tickless::tokio_time::{Instant, interval, rescue_after, sleep, sleep_until, stats, timeout};
use tickless::tokio_time::{timers, use_tokio_sleep};
use tokio::runtime::Builder;

const MS: Duration = Duration::from_millis(1);

/// Method: a process of its own, in which no other test starts threads.
#[test]
#[cfg(target_os = "linux")]
fn a_sleep_starts_no_thread() {
    if alone("runtimes::a_sleep_starts_no_thread", &[""]).is_none() {
        return;
    }
    current_thread().block_on(async { sleep(MS).await });
    multi_thread().block_on(async { tokio::spawn(async { sleep(MS).await }).await.unwrap() });
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
    };
    let ours: Vec<String> = tasks.map(name).filter(|name| name.starts_with("tickless")).collect();
    assert_eq!(ours, Vec::<String>::new());
}

#[test]
fn a_sleep_outlives_its_runtime() {
    for runtime in [current_thread(), multi_thread(), paused_runtime()] {
        let [mut polled, unpolled] = {
            let _in_runtime = runtime.enter();
            [Box::pin(sleep(HOUR)), Box::pin(sleep(HOUR))]
        };
        runtime.block_on(async { assert!(timeout(MS, &mut polled).await.is_err()) });
        let waits = std::thread::spawn(move || {
            pollster::block_on(&mut polled);
            polled
        });
        std::thread::sleep(5 * MS);
        assert!(!waits.is_finished());
        drop(runtime);
        let polled = waits.join().unwrap();
        assert!(polled.is_elapsed());
        pollster::block_on(unpolled);
    }
}

/// Goal: the timers of a runtime have one descriptor, from the first sleep until the runtime ends.
#[test]
#[cfg(target_os = "linux")]
fn a_runtime_has_one_descriptor() {
    if alone("runtimes::a_runtime_has_one_descriptor", &[""]).is_none() {
        return;
    }
    let timerfds = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let target = |file: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_link(file.unwrap().path()).unwrap_or_default()
        };
        files.map(target).filter(|to| to.to_string_lossy().contains("timerfd")).count()
    };
    for runtime in [current_thread(), multi_thread()] {
        assert_eq!(timerfds(), 0);
        runtime.spawn(async { sleep(HOUR).await });
        runtime.block_on(async { sleep(MS).await });
        assert_eq!(timerfds(), 1);
        drop(runtime);
    }
    let runtime = current_thread();
    runtime.block_on(async { sleep(MS).await });
    assert_eq!(timerfds(), 1, "it stays while no timer is pending");
    drop(runtime);
    assert_eq!(timerfds(), 0);
}

/// Goal: the memory of a runtime's timers is what `docs/dev/counts.md` states.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "asks the allocator")]
fn the_timers_of_a_runtime_take_little_memory() {
    use tokio::runtime::Runtime;
    if alone("runtimes::the_timers_of_a_runtime_take_little_memory", &[""]).is_none() {
        return;
    }
    // SAFETY: the function only reads the allocator's counts, under its locks.
    let used = || unsafe { libc::mallinfo2() }.uordblks;
    let runtimes: Vec<_> = (0..50).map(|_| current_thread()).collect();
    let per_runtime = |run: fn(&Runtime)| {
        let before = used();
        runtimes.iter().for_each(run);
        (used() - before) / runtimes.len()
    };
    let precise = per_runtime(|runtime| runtime.block_on(async { sleep(MS).await }));
    let coarse = |runtime: &Runtime| runtime.block_on(async { timers().coarse_sleep(MS).await });
    let coarse = per_runtime(coarse);
    assert!(precise < 8_000 && coarse < 86_000, "{precise} and {coarse} bytes");
}

#[test]
fn a_blocked_runtime_delays_its_own_timers_only() {
    let (blocked, other) = (current_thread(), multi_thread());
    let (ended, end) = channel();
    let late = std::thread::spawn(move || {
        blocked.block_on(async {
            let begin = std::time::Instant::now();
            let sleeps = tokio::spawn(async move {
                sleep(MS).await;
                begin.elapsed()
            });
            tokio::task::yield_now().await;
            end.recv_timeout(60_000 * MS).expect("the other runtime's sleep ends");
            (begin.elapsed(), sleeps.await.unwrap(), stats().unwrap())
        })
    });
    other.block_on(async { sleep(150 * MS).await });
    ended.send(()).unwrap();
    let (blocked_for, slept, stats) = late.join().unwrap();
    assert!(slept >= blocked_for);
    assert_eq!((stats.total().fired, stats.bases[0].overdue), (1, 1));
    assert!(stats.bases[0].late_precise.sum() >= 100 * MS);
}

#[test]
fn a_sleep_of_tokios_is_an_event_device() {
    let without_io = Builder::new_current_thread().enable_time().build().unwrap();
    for (runtime, from) in [(without_io, 1), (current_thread(), 10), (multi_thread(), 10)] {
        let sleeps = runtime.spawn(async move {
            let (begin, mut calls, mut long) = (Instant::now(), 0, None);
            for nth in 1..=20 {
                if nth == from {
                    use_tokio_sleep();
                    calls = stats().unwrap().bases[0].device_calls;
                    long = Some(tokio::spawn(sleep(HOUR)));
                }
                sleep(MS).await;
                assert!(begin.elapsed() >= nth * MS);
            }
            long.unwrap().abort();
            stats().unwrap().bases[0].device_calls - calls
        });
        assert_eq!(runtime.block_on(sleeps).unwrap(), 0);
    }
}

/// A task that always wakes itself, so that the worker never waits for events, and a future that
/// always uses up the budget of its task.
#[test]
fn busy_tasks_do_not_delay_timers() {
    for runtime in [current_thread(), multi_thread()] {
        let busy = runtime.spawn(async {
            let (begin, mut slept) = (Instant::now(), pin!(sleep(5 * MS)));
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                slept.as_mut().poll(cx)
            })
            .await;
            let reads = async {
                loop {
                    let _ = tokio::io::AsyncReadExt::read(&mut tokio::io::empty(), &mut [0]).await;
                }
            };
            assert!(timeout(5 * MS, reads).await.is_err());
            assert!(begin.elapsed() >= 10 * MS);
        });
        runtime.block_on(busy).unwrap();
    }
}

#[test]
fn another_thread_arms_an_earlier_timer() {
    for runtime in [current_thread(), multi_thread()] {
        let (handle, begin) = (runtime.handle().clone(), std::time::Instant::now());
        let other = std::thread::spawn(move || {
            std::thread::sleep(10 * MS);
            let _entered = handle.enter();
            pollster::block_on(sleep(10 * MS));
            begin.elapsed()
        });
        let wait_for = tokio::task::spawn_blocking;
        let early = runtime.block_on(async move {
            let long = tokio::spawn(sleep(HOUR));
            let early = wait_for(move || other.join().unwrap()).await.unwrap();
            long.abort();
            early
        });
        assert!(early >= 20 * MS && early < HOUR);
    }
}

#[test]
fn a_paused_clock_moves_both_kinds_of_timers_in_order() {
    let order = paused_runtime().block_on(async {
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        for (nth, hours) in [7, 2, 5, 1, 8, 3, 6, 4].into_iter().enumerate() {
            let tx = tx.clone();
            tokio::spawn(async move {
                match nth % 2 {
                    0 => sleep(HOUR * hours).await,
                    _ => tokio::time::sleep(HOUR * hours).await,
                }
                let (ours, theirs) = (Instant::now(), tokio::time::Instant::now());
                assert_eq!(ours.into_std(), theirs.into_std());
                tx.send(hours).unwrap();
            });
        }
        drop(tx);
        let mut order = Vec::new();
        while let Some(hours) = rx.recv().await {
            order.push(hours);
        }
        order
    });
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_clock_that_is_paused_later_moves_pending_timers() {
    for pause in [tokio::time::pause, tickless::tokio_time::pause] {
        current_thread().block_on(async {
            let pending = tokio::spawn(sleep(HOUR));
            sleep(MS).await;
            pause();
            let stands = Instant::now();
            std::thread::sleep(MS);
            assert_eq!(Instant::now(), stands);
            tokio::time::advance(HOUR / 2).await;
            assert!(!pending.is_finished());
            tokio::time::advance(HOUR).await;
            pending.await.unwrap();
            assert_eq!(Instant::now() - stands, HOUR + HOUR / 2);
            tokio::time::resume();
            sleep(MS).await;
            assert!(Instant::now() - stands >= HOUR + HOUR / 2 + MS);
        });
    }
}

#[test]
fn a_paused_clock_ignores_timers_that_are_not_pending() {
    paused_runtime().block_on(async {
        let begin = Instant::now();
        for _ in 0..3 {
            let quick = timeout(HOUR, tokio::task::yield_now()).await;
            assert!(quick.is_ok());
            // While this is pending, only a thread outside of the runtime is running.
            let outside = tokio::task::spawn_blocking(|| std::thread::sleep(3 * MS));
            outside.await.unwrap();
        }
        let mut pushed_out = pin!(sleep(HOUR));
        assert!(timeout(MS, pushed_out.as_mut()).await.is_err());
        pushed_out.as_mut().reset(begin + 3 * HOUR);
        sleep_until(begin + 2 * HOUR).await;
        assert_eq!(begin.elapsed(), 2 * HOUR);
        pushed_out.await;
        assert_eq!(begin.elapsed(), 3 * HOUR);
        // A pipe that another thread writes to: nothing but the reactor waits.
        let (mut reader, writer) = std::os::unix::net::UnixStream::pair()
            .map(|(one, other)| {
                one.set_nonblocking(true).unwrap();
                (tokio::net::UnixStream::from_std(one).unwrap(), other)
            })
            .unwrap();
        drop(timeout(HOUR, tokio::task::yield_now()).await);
        let writes = std::thread::spawn(move || {
            std::thread::sleep(20 * MS);
            std::io::Write::write_all(&mut { writer }, b"x").unwrap();
        });
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut reader, &mut byte).await.unwrap();
        writes.join().unwrap();
        assert_eq!(begin.elapsed(), 3 * HOUR);
    });
}

/// As with tokio's own timers: a pending timer does not move the clock meanwhile.
#[test]
fn a_paused_clock_stands_while_a_blocking_closure_runs() {
    paused_runtime().block_on(async {
        let begin = Instant::now();
        let pending = tokio::spawn(sleep(HOUR));
        let of_process = tokio::spawn(future::coarse_sleep(2 * HOUR));
        tokio::task::yield_now().await;
        let blocking = tokio::task::spawn_blocking(|| std::thread::sleep(20 * MS));
        assert!(timeout(HOUR / 2, blocking).await.is_ok());
        assert_eq!((begin.elapsed(), pending.is_finished()), (Duration::ZERO, false));
        pending.await.unwrap();
        assert_eq!(begin.elapsed(), HOUR);
        of_process.await.unwrap();
        assert_eq!(begin.elapsed(), 2 * HOUR);
    });
}

/// Goal: futures that are ready at once let the runtime's other tasks run, whichever timers they
/// are made from.
#[test]
fn ready_futures_of_all_timers_let_other_tasks_run() {
    type Next = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()>>>>;
    fn next<F: Future + 'static>(mut make: impl FnMut() -> F + 'static) -> Next {
        Box::new(move || {
            let made = make();
            Box::pin(async { drop(made.await) })
        })
    }
    const NONE: Duration = Duration::ZERO;
    const PAST: tickless::time::Instant = tickless::time::Instant::ZERO;
    const WALL: TimeBase = TimeBase::Realtime;
    let mut all = vec![
        next(|| future::sleep(NONE)),
        next(|| future::sleep_until(PAST)),
        next(|| future::coarse_sleep(NONE)),
        next(|| future::timeout(NONE, pending::<()>())),
        next(|| future::coarse_timeout(NONE, pending::<()>())),
        next(|| future::clock_sleep(WALL, NONE)),
        next(|| future::clock_sleep_until(WALL, PAST)),
        next(|| future::clock_timeout(WALL, NONE, pending::<()>())),
        next(|| future::deadline_scope(PAST, pending::<()>())),
    ];
    for source in [TimerSource::process().unwrap(), timers()] {
        let [one, two, three, four] = std::array::from_fn(|_| source.clone());
        all.push(next(move || one.sleep(NONE)));
        all.push(next(move || two.sleep_until(PAST)));
        all.push(next(move || three.coarse_sleep(NONE)));
        all.push(next(move || four.coarse_timeout_after(NONE, pending::<()>())));
    }
    for (nth, mut next) in all.into_iter().enumerate() {
        let turns = current_thread().block_on(turns(async || next().await));
        assert!(turns <= 129, "{nth}: {turns}");
    }
    let mut ticks = future::interval(Duration::from_nanos(1));
    let turns = current_thread().block_on(turns(async || _ = ticks.tick().await));
    assert!(turns <= 129, "{turns}");
}

#[test]
fn a_runtime_that_has_ended_is_left() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    runtime.block_on(async { sleep(MS).await });
    drop(runtime);
    let _entered = handle.enter();
    let begin = std::time::Instant::now();
    pollster::block_on(sleep(5 * MS));
    assert!(begin.elapsed() >= 5 * MS);
}

/// Its pending tick completes, and later ones are a period apart.
#[test]
fn an_interval_outlives_its_runtime() {
    for runtime in [current_thread(), multi_thread()] {
        let mut ticks = runtime.block_on(async {
            let mut ticks = interval(10 * MS);
            ticks.tick().await;
            ticks
        });
        drop(runtime);
        // Before the pending tick, at which the next period begins.
        let begin = std::time::Instant::now();
        pollster::block_on(ticks.tick());
        let due = [(); 3].map(|()| pollster::block_on(ticks.tick()));
        assert!(begin.elapsed() >= 30 * MS, "{:?}", begin.elapsed());
        assert_eq!([due[1] - due[0], due[2] - due[1]], [10 * MS; 2]);
        ticks.reset();
        pollster::block_on(ticks.tick());
        assert!(begin.elapsed() >= 40 * MS, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_thread_fires_the_timers_of_a_blocked_worker() {
    for uses_tokio_sleep in [false, true] {
        current_thread().block_on(async {
            if uses_tokio_sleep {
                use_tokio_sleep();
            }
            rescue_after(HOUR).unwrap();
            rescue_after(5 * MS).unwrap();
            let (begin, slept, (end, ended)) =
                (std::time::Instant::now(), sleep(20 * MS), channel());
            std::thread::spawn(move || {
                pollster::block_on(slept);
                end.send(())
            });
            // This blocks the runtime's only worker.
            ended.recv_timeout(60_000 * MS).expect("another thread fires the timer");
            assert!(begin.elapsed() >= 20 * MS);
        });
    }
}
