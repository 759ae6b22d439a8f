//! `tickless::tokio_time` compared with `tokio::time`: one test body runs against both.
//!
//! The results must be equal, except for the differences in the table in the module's
//! documentation, which must hold.

// Tests fail by panicking, and may sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)]

#[path = "support/woken.rs"]
mod woken;

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::task::{Context, Waker};
use std::time::Duration;
use tickless::VirtualTime;
use woken::{poll, woken};

const HOUR: Duration = Duration::from_secs(3600);

/// The bodies, which use the module named `time` where the macro is expanded.
macro_rules! bodies {
    () => {
        use super::*;
        use std::pin::pin;
        use std::task::Poll;
        use time::{Instant, MissedTickBehavior};

        const BEHAVIORS: [MissedTickBehavior; 3] =
            [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip];

        fn ms(n: u64) -> Duration {
            Duration::from_millis(n)
        }

        pub async fn sleep_until_and_reset() -> Vec<Duration> {
            let begin = Instant::now();
            let mut sleep = pin!(time::sleep_until(begin + HOUR));
            assert_eq!(sleep.deadline(), begin + HOUR);
            assert!(!sleep.is_elapsed());
            sleep.as_mut().await;
            assert!(sleep.is_elapsed());
            let first = begin.elapsed();
            sleep.as_mut().reset(begin + 3 * HOUR);
            assert!(!sleep.is_elapsed());
            sleep.as_mut().await;
            let second = begin.elapsed();
            // A deadline that has passed is ready immediately.
            sleep.as_mut().reset(begin);
            sleep.await;
            vec![first, second, begin.elapsed()]
        }

        pub async fn timeouts() -> Vec<(Result<u32, String>, Duration)> {
            let mut ends = Vec::new();
            for (work, limit) in [(1, 2), (2, 1), (0, 0)] {
                let begin = Instant::now();
                let work = async {
                    if work > 0 {
                        time::sleep(HOUR * work).await;
                    }
                    work
                };
                let end = time::timeout(HOUR * limit, work).await;
                ends.push((end.map_err(|error| error.to_string()), begin.elapsed()));
            }
            let at = Instant::now() + HOUR;
            let never = std::future::pending::<u32>();
            let end = time::timeout_at(at, never).await.map_err(std::io::Error::from);
            let end = end.map_err(|error| format!("{:?}", error.kind()));
            ends.push((end, Instant::now() - at));
            ends.push((
                time::timeout(Duration::MAX, async { 7 }).await.map_err(|_| String::new()),
                HOUR,
            ));
            ends.push((Ok(time::timeout(HOUR, std::future::ready(9)).into_inner().await), HOUR));
            ends
        }

        /// When ticks are due and when they are taken, by a consumer that is slow in between, with
        /// one of the three behaviors.
        pub async fn ticks(nth: usize) -> Vec<(Duration, Duration)> {
            let behavior = BEHAVIORS[nth];
            let begin = Instant::now();
            let mut interval = time::interval(ms(100));
            assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::default());
            interval.set_missed_tick_behavior(behavior);
            assert_eq!((interval.missed_tick_behavior(), interval.period()), (behavior, ms(100)));
            let mut seen = Vec::new();
            for busy in [0, 30, 370, 0, 0, 0, 103, 0, 250, 0, 0] {
                let due = interval.tick().await;
                seen.push((due - begin, begin.elapsed()));
                time::sleep(ms(busy)).await;
            }
            seen
        }

        pub async fn intervals_that_are_reset() -> Vec<Duration> {
            let begin = Instant::now();
            let mut interval = time::interval_at(begin + HOUR, 2 * HOUR);
            let mut seen = vec![interval.tick().await - begin];
            interval.reset();
            seen.push(interval.tick().await - begin);
            interval.reset_immediately();
            seen.push(interval.tick().await - begin);
            interval.reset_after(ms(5));
            seen.push(interval.tick().await - begin);
            interval.reset_at(begin + 100 * HOUR);
            seen.push(interval.tick().await - begin);
            seen.push(interval.tick().await - begin);
            seen
        }

        /// A paused clock does not advance by itself, can be advanced, and runs again.
        pub async fn pausing() -> Vec<Duration> {
            let begin = Instant::now();
            let mut seen = vec![begin.elapsed()];
            time::advance(HOUR).await;
            seen.push(begin.elapsed());
            let sleep = tokio::spawn(time::sleep(HOUR));
            time::advance(HOUR).await;
            sleep.await.unwrap();
            seen.push(begin.elapsed());
            time::resume();
            assert!(Instant::now() >= begin + 2 * HOUR);
            time::pause();
            let stands = Instant::now();
            std::thread::sleep(ms(2));
            assert_eq!(Instant::now(), stands);
            seen
        }

        pub async fn instants() -> Vec<Option<Duration>> {
            let now = Instant::now();
            let std: std::time::Instant = now.into();
            assert_eq!(Instant::from_std(std), now);
            assert_eq!(Instant::from(now.into_std() + HOUR), now + HOUR);
            let mut moved = now;
            moved += HOUR;
            moved -= ms(1);
            let mut hashed = std::collections::HashSet::new();
            assert!(hashed.insert(now) && !hashed.insert(now) && hashed.insert(moved));
            vec![
                Some(moved - now),
                Some(now - moved),
                moved.checked_duration_since(now),
                now.checked_duration_since(moved),
                Some(now.saturating_duration_since(moved)),
                Some(moved.duration_since(now)),
                now.checked_add(HOUR).map(|later| later - now),
                now.checked_add(Duration::MAX).map(|later| later - now),
                now.checked_sub(Duration::MAX).map(|earlier| now - earlier),
            ]
        }

        /// The times at which two sleeps complete after one advance past both.
        pub async fn advances_past_both() -> Vec<Duration> {
            let begin = Instant::now();
            let sleeps = [1, 2].map(|hours| {
                tokio::spawn(async move {
                    time::sleep(HOUR * hours).await;
                    begin.elapsed()
                })
            });
            tokio::task::yield_now().await;
            time::advance(3 * HOUR).await;
            let mut seen = Vec::new();
            for sleep in sleeps {
                seen.push(sleep.await.unwrap());
            }
            seen
        }

        /// Whether a sleep is ready, and how often its task was woken, after each of these steps.
        async fn stepped(
            mut sleep: std::pin::Pin<&mut time::Sleep>,
            steps_us: &[u64],
        ) -> Vec<(bool, u64)> {
            let (woken, waker) = woken();
            let mut seen = Vec::new();
            for step in steps_us.iter().map(Some).chain([None]) {
                let ready = poll(sleep.as_mut(), &waker).is_ready();
                seen.push((ready, woken.count()));
                if let Some(&step) = step {
                    time::advance(Duration::from_micros(step)).await;
                }
            }
            seen
        }

        pub async fn small_advances() -> Vec<(bool, u64)> {
            let mut seen = stepped(pin!(time::sleep(ms(1))), &[250, 250, 250, 250]).await;
            seen.extend(stepped(pin!(time::sleep(ms(300))), &[100_000, 51_592, 1, 150_000]).await);
            seen
        }

        pub async fn resets_around_the_deadline() -> Vec<(bool, u64)> {
            let begin = Instant::now();
            let mut sleep = pin!(time::sleep_until(begin + ms(100)));
            let mut seen = stepped(sleep.as_mut(), &[50_000]).await;
            sleep.as_mut().reset(begin + ms(110));
            seen.extend(stepped(sleep.as_mut(), &[55_000, 6_000]).await);
            sleep.as_mut().reset(begin + ms(250));
            seen.extend(stepped(sleep.as_mut(), &[5_000]).await);
            sleep.as_mut().reset(begin + ms(200));
            seen.extend(stepped(sleep.as_mut(), &[50_000, 50_000]).await);
            sleep.as_mut().reset(begin + 10 * HOUR);
            drop(stepped(sleep.as_mut(), &[]).await);
            sleep.as_mut().reset(begin + 5 * HOUR);
            sleep.await;
            assert!(begin.elapsed() < 6 * HOUR);
            seen
        }

        /// When each of many sleeps of random durations ends, one after another.
        pub async fn random_sleeps() -> Vec<Duration> {
            let (begin, mut random, mut seen) = (Instant::now(), 1_u64, Vec::new());
            for _ in 0..2_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                time::sleep(Duration::from_nanos((random >> 33) % 1_000_000_000)).await;
                seen.push(begin.elapsed());
            }
            seen
        }

        /// Ticks that are ready after each advance, with one of the three behaviors. A step of zero
        /// resets the interval.
        pub async fn polled_intervals(nth: usize) -> Vec<Vec<Duration>> {
            let begin = Instant::now();
            time::advance(ms(1)).await;
            let mut interval = time::interval_at(begin, ms(300));
            interval.set_missed_tick_behavior(BEHAVIORS[nth]);
            let mut seen = Vec::new();
            for step in [100, 200, 400, 500, 650, 100, 201, 250, 0, 250, 50, 2000, 300] {
                if step == 0 {
                    interval.reset();
                }
                let mut ready = Vec::new();
                let cx = &mut Context::from_waker(Waker::noop());
                while let Poll::Ready(tick) = interval.poll_tick(cx) {
                    ready.push(tick - begin);
                }
                seen.push(ready);
                time::advance(ms(step)).await;
            }
            seen
        }

        /// A deadline that never comes, beside one that comes at once; and a sleep that is dropped
        /// after a reset to the deadline of another one.
        pub async fn the_near_and_the_far() -> Vec<bool> {
            let far = time::timeout(Duration::MAX, std::future::pending::<()>());
            let (mut far, mut never) = (pin!(far), pin!(time::sleep(Duration::MAX)));
            let waker = Waker::noop();
            let mut seen = vec![poll(far.as_mut(), waker).is_ready()];
            seen.push(poll(never.as_mut(), waker).is_ready());
            time::sleep(Duration::from_nanos(1)).await;
            time::advance(HOUR * 24 * 365 * 10).await;
            seen.push(poll(far, waker).is_ready());
            seen.push(poll(never, waker).is_ready());
            let begin = Instant::now();
            let [mut first, mut moved, mut last] =
                [5, 5, 10].map(|after| Box::pin(time::sleep(ms(after))));
            for sleep in [&mut first, &mut moved, &mut last] {
                seen.push(poll(sleep.as_mut(), waker).is_ready());
            }
            moved.as_mut().reset(begin + ms(10));
            first.await;
            seen.push(moved.is_elapsed());
            drop(moved);
            last.await;
            seen.push(begin.elapsed() < ms(12));
            seen
        }

        /// A deadline at the same instant as the future's own, or one that has passed.
        pub async fn timeouts_at_the_limit() -> Vec<bool> {
            let now = Instant::now();
            let mut seen = vec![
                time::timeout(Duration::ZERO, async {}).await.is_ok(),
                time::timeout(Duration::ZERO, std::future::pending::<()>()).await.is_ok(),
                time::timeout_at(now, std::future::pending::<()>()).await.is_ok(),
                time::timeout_at(now + ms(5), time::sleep_until(now + ms(5))).await.is_ok(),
            ];
            // A future that is always woken does not keep its timeout from firing.
            let busy = async {
                loop {
                    tokio::task::yield_now().await;
                    tokio::time::advance(Duration::from_micros(10)).await;
                }
            };
            seen.push(time::timeout(ms(5), busy).await.is_ok());
            seen
        }

        /// Data that is ready does not let the clock move.
        pub async fn ready_sockets() -> Vec<Duration> {
            let begin = Instant::now();
            let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
            one.send(b"x").await.unwrap();
            let receives = tokio::spawn(async move {
                other.recv(&mut [0]).await.unwrap();
                begin.elapsed()
            });
            time::sleep(ms(100)).await;
            vec![receives.await.unwrap(), begin.elapsed()]
        }

        // The differences.

        /// Whether a sleep is ready when it is polled right after a reset to a time in the past.
        pub async fn ready_after_a_reset_to_the_past() -> bool {
            let begin = Instant::now();
            let mut sleep = pin!(time::sleep(HOUR));
            let cx = &mut Context::from_waker(Waker::noop());
            assert!(sleep.as_mut().poll(cx).is_pending());
            time::advance(ms(5)).await;
            sleep.as_mut().reset(begin + ms(1));
            let at_once = sleep.as_mut().poll(cx).is_ready();
            sleep.await;
            assert_eq!(begin.elapsed(), ms(5));
            at_once
        }

        /// The message of a sleep in a runtime that enables nothing.
        pub fn sleeps_without_a_driver() -> String {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async { message(|| drop(time::sleep(ms(1)))) })
        }

        pub fn sleeps_outside_of_a_runtime() -> bool {
            catch_unwind(|| drop(time::sleep(ms(1)))).is_ok()
        }

        pub async fn an_instant_out_of_range() -> bool {
            catch_unwind(|| Instant::now() + Duration::MAX).is_ok()
        }

        /// How many of a thousand ready timers can be polled in one turn of a task.
        pub async fn ready_polls_in_one_turn() -> usize {
            let mut sleep = pin!(time::sleep(ms(1)));
            sleep.as_mut().await;
            std::future::poll_fn(|cx| {
                let polls = (0..1000).map(|_| sleep.as_mut().poll(cx));
                Poll::Ready(polls.take_while(Poll::is_ready).count())
            })
            .await
        }

        /// A consumer that is late by three and a half periods of a millisecond.
        pub async fn short_periods() -> Vec<Duration> {
            let begin = Instant::now();
            let mut interval = time::interval(ms(1));
            interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
            interval.tick().await;
            time::advance(Duration::from_micros(4_500)).await;
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(interval.tick().await - begin);
            }
            seen
        }

        /// Whether the panic of each of these calls names the caller's file.
        pub fn panics_name_the_caller() -> Vec<bool> {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let in_runtime = |panics: fn()| is_panic_here(|| runtime.block_on(async { panics() }));
            vec![
                is_panic_here(|| time::pause()),
                in_runtime(|| time::resume()),
                is_panic_here(|| drop(time::interval(Duration::ZERO))),
                in_runtime(|| drop(time::interval_at(Instant::now(), Duration::ZERO))),
                in_runtime(|| drop(time::sleep(ms(5)))),
                in_runtime(|| drop(time::sleep_until(Instant::now() + ms(5)))),
                in_runtime(|| drop(time::timeout(ms(5), std::future::pending::<()>()))),
                in_runtime(|| {
                    drop(time::timeout_at(Instant::now() + ms(5), std::future::pending::<()>()));
                }),
            ]
        }

        pub fn pauses_without_a_clock() -> String {
            message(|| time::pause())
        }

        pub async fn pauses_twice() -> String {
            message(|| time::pause())
        }

        pub async fn intervals_of_nothing() -> String {
            message(|| drop(time::interval(Duration::ZERO)))
        }
    };
}

mod theirs {
    use tokio::time;
    bodies!();
}

mod ours {
    use tickless::tokio_time as time;
    bodies!();
}

/// Returns the message of a panic.
fn message(panics: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).expect("a text")
}

/// Returns whether a panic names this file.
fn is_panic_here(panics: impl FnOnce()) -> bool {
    thread_local! {
        static FILE: RefCell<String> = const { RefCell::new(String::new()) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            FILE.set(panic.location().expect("a location").file().to_string());
            before(panic);
        }));
    });
    message(panics);
    FILE.take() == file!()
}

/// Runs a body on tokio's current-thread runtime and its paused clock.
fn paused<F: Future>(body: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().expect("a runtime").block_on(body)
}

/// Rounds down to the resolution of tokio's clock and the slack of our sleeps.
fn coarse(at: Duration) -> u128 {
    let at = at.as_micros();
    if at >= 3_600_000_000 { at / 3_600_000_000 * 3_600_000 } else { at / 1000 }
}

/// Runs a body on both clocks. Returns what ours has seen, which must be equal to what tokio's has
/// seen, each rounded by a function.
macro_rules! same {
    ($body:ident($($argument:expr)?)) => {
        same!($body($($argument)?), |seen| seen)
    };
    ($body:ident($($argument:expr)?), $rounded:expr) => {{
        let ours: Vec<_> = paused(ours::$body($($argument)?)).into_iter().map($rounded).collect();
        let theirs = paused(theirs::$body($($argument)?)).into_iter().map($rounded);
        assert_eq!(ours, theirs.collect::<Vec<_>>(), stringify!($body));
        ours
    }};
}

#[test]
fn results_match_tokio() {
    same!(sleep_until_and_reset(), coarse);
    let ends = same!(timeouts(), |(end, at)| (end, at.as_secs()));
    assert_eq!(ends[1].0, Err("deadline has elapsed".into()));
    let [bursts, delays, skips] =
        [0, 1, 2].map(|nth| same!(ticks(nth), |(due, at)| (due.as_millis(), at.as_millis())));
    assert!(bursts != delays && delays != skips);
    same!(intervals_that_are_reset(), |at| at.as_millis() / 10_000);
    assert_eq!(same!(pausing()), [Duration::ZERO, HOUR, 2 * HOUR]);
    assert_eq!(same!(advances_past_both()), [3 * HOUR, 3 * HOUR]);
    same!(instants());
}

#[test]
fn polls_match_tokio() {
    same!(small_advances());
    let resets = same!(resets_around_the_deadline());
    assert!(resets.iter().any(|(ready, _)| *ready) && resets.iter().any(|(ready, _)| !ready));
    for behavior in 0..3 {
        same!(polled_intervals(behavior));
    }
    same!(the_near_and_the_far());
    same!(timeouts_at_the_limit());
    same!(random_sleeps());
    same!(ready_sockets());
}

#[test]
fn panics_match_tokio() {
    assert!(theirs::pauses_without_a_clock().contains("outside the Tokio runtime"));
    assert_eq!(ours::pauses_without_a_clock(), theirs::pauses_without_a_clock());
    assert_eq!(paused(ours::pauses_twice()), paused(theirs::pauses_twice()));
    assert_eq!(paused(ours::intervals_of_nothing()), paused(theirs::intervals_of_nothing()));
    assert_eq!(theirs::panics_name_the_caller(), [true; 8]);
    assert_eq!(ours::panics_name_the_caller(), [true; 8]);
}

#[test]
fn differences_are_as_documented() {
    // Outside of a runtime.
    assert!(!theirs::sleeps_outside_of_a_runtime());
    assert!(ours::sleeps_outside_of_a_runtime());
    // What a runtime must enable.
    assert!(theirs::sleeps_without_a_driver().contains("enable_time"));
    #[cfg(target_os = "linux")]
    assert!(ours::sleeps_without_a_driver().contains("enable_io"));
    // An instant out of range.
    assert!(!paused(theirs::an_instant_out_of_range()));
    assert!(paused(ours::an_instant_out_of_range()));
    // Ready timers in a loop.
    assert!(paused(theirs::ready_polls_in_one_turn()) <= 128);
    assert_eq!(paused(ours::ready_polls_in_one_turn()), 1000);
    // A reset to the past.
    assert!(paused(theirs::ready_after_a_reset_to_the_past()));
    assert!(!paused(ours::ready_after_a_reset_to_the_past()));
    // Periods below 5 ms.
    let ms = |seen: Vec<Duration>| seen.iter().map(Duration::as_millis).collect::<Vec<_>>();
    assert_eq!(ms(paused(theirs::short_periods())), [1, 2, 3]);
    assert_eq!(ms(paused(ours::short_periods())), [1, 5, 6]);
}

/// Goal: the resolution is finer than tokio's: of many sleeps of 250 µs, some end before tokio's
/// first millisecond has passed.
#[test]
fn the_resolution_is_as_documented() {
    let short = Duration::from_micros(250);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let best = |slept: &mut dyn FnMut() -> Duration| (0..50).map(|_| slept()).min().unwrap();
    let theirs = best(&mut || {
        let begin = std::time::Instant::now();
        runtime.block_on(async { tokio::time::sleep(short).await });
        begin.elapsed()
    });
    let ours = best(&mut || {
        let begin = std::time::Instant::now();
        runtime.block_on(async { tickless::tokio_time::sleep(short).await });
        begin.elapsed()
    });
    assert!(theirs >= Duration::from_millis(1), "{theirs:?}");
    assert!(ours >= short && ours < Duration::from_millis(1), "{ours:?}");
}

#[test]
fn timeouts_end_with_the_deadline_scope_around_them() {
    use tickless::future::{propagate_deadline, remaining};
    use tickless::tokio_time::{Instant, sleep, timeout, timers};
    paused(async {
        let (begin, timers) = (Instant::now(), timers());
        let request = async {
            sleep(HOUR).await;
            let task = tokio::spawn(propagate_deadline(sleep(5 * HOUR)));
            let never = timeout(4 * HOUR, std::future::pending::<()>()).await;
            (never.is_err(), remaining(), task)
        };
        let ended = timers.deadline_scope(timers.now() + 3 * HOUR, request).await;
        let (has_elapsed, left, task) = ended.expect("the timeout ends before the scope");
        assert_eq!((has_elapsed, left), (true, Some(Duration::ZERO)));
        assert!(task.await.unwrap().is_err_and(|ended| ended.is_ambient));
        assert_eq!(begin.elapsed(), 3 * HOUR);
    });
}

#[test]
fn a_runtime_of_several_threads_runs_in_virtual_time() {
    use tickless::tokio_time::{run_in_virtual_time, sleep};
    for workers in [1, 2, 4] {
        for _ in 0..20 {
            let slept = run_in_virtual_time(workers, |time| async move {
                let begin = time.now();
                let sleeps: Vec<_> = (1..=20)
                    .map(|hours| {
                        let time = time.clone();
                        tokio::spawn(async move {
                            sleep(HOUR * hours).await;
                            let first = time.now() - begin;
                            sleep(HOUR * hours).await;
                            (hours, first, time.now() - begin)
                        })
                    })
                    .collect();
                let mut slept = Vec::new();
                for sleep in sleeps {
                    slept.push(sleep.await.unwrap());
                }
                // The reactor works, too.
                let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
                one.send(b"x").await.unwrap();
                time.outside(async { other.recv(&mut [0]).await.unwrap() }).await;
                slept
            });
            for (hours, first, second) in slept {
                assert_eq!((first, second), (HOUR * hours, HOUR * hours * 2));
            }
        }
    }
    let foreign = message(|| {
        run_in_virtual_time(2, |_| async { tokio::time::sleep(HOUR).await });
    });
    assert!(foreign.contains("a timer of tokio's"), "{foreign}");

    let theirs = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    let refused = theirs.block_on(async { message(tokio::time::pause) });
    assert!(refused.contains("requires the `current_thread`"), "{refused}");
}

#[test]
fn clocks_are_entered_and_left() {
    use tickless::tokio_time::Instant;
    let (one, other) = (VirtualTime::new(), VirtualTime::new());
    other.advance(HOUR);
    let first = one.enter();
    assert_eq!(tickless::time::Instant::from(Instant::now()), one.now());
    let second = other.enter();
    assert_eq!(tickless::time::Instant::from(Instant::now()), other.now());
    drop(first);
    assert_eq!(tickless::time::Instant::from(Instant::now()), other.now());
    drop(second);
    let real = tickless::time::Instant::from(Instant::now());
    assert!(real != one.now() && real != other.now());
}

#[test]
fn a_runtime_that_has_ended_is_left() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    runtime.block_on(async { tickless::tokio_time::sleep(Duration::from_millis(1)).await });
    drop(runtime);
    let _entered = handle.enter();
    let begin = std::time::Instant::now();
    pollster::block_on(tickless::tokio_time::sleep(Duration::from_millis(5)));
    assert!(begin.elapsed() >= Duration::from_millis(5));
}
