//! `tickless::tokio_time` compared with `tokio::time`: one test body runs against both.
//!
//! The results must be equal, except for the differences in the table in the module's
//! documentation, which must hold. Each topic has a file, a module of `ours` and `theirs`.

// Tests fail by panicking, and may sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)]
#![allow(clippy::duplicate_mod, clippy::panic)]

mod moved_clocks;
mod process_timers;
mod virtual_time;
#[path = "../support/woken.rs"]
mod woken;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[path = "."]
mod theirs {
    use tokio::time;

    pub mod clock;
    pub mod differences;
    pub mod intervals;
    pub mod panics;
    pub mod sleeps;
    pub mod timeouts;
    pub mod turns;
}

#[path = "."]
mod ours {
    use tickless::tokio_time as time;

    pub mod clock;
    pub mod differences;
    pub mod intervals;
    pub mod panics;
    pub mod sleeps;
    pub mod timeouts;
    pub mod turns;
}

const HOUR: Duration = Duration::from_secs(3600);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Returns the message of a panic.
fn message(panics: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).expect("a text")
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
    ($topic:ident::$body:ident($($argument:expr)?)) => {
        same!($topic::$body($($argument)?), |seen| seen)
    };
    ($topic:ident::$body:ident($($argument:expr)?), $rounded:expr) => {{
        let body = paused(ours::$topic::$body($($argument)?));
        let ours: Vec<_> = body.into_iter().map($rounded).collect();
        let theirs = paused(theirs::$topic::$body($($argument)?)).into_iter().map($rounded);
        assert_eq!(ours, theirs.collect::<Vec<_>>(), stringify!($body));
        ours
    }};
}

#[test]
fn results_match_tokio() {
    same!(sleeps::sleep_until_and_reset(), coarse);
    let ends = same!(timeouts::timeouts(), |(end, at)| (end, at.as_secs()));
    assert_eq!(ends[1].0, Err("deadline has elapsed".into()));
    let [bursts, delays, skips] = [0, 1, 2]
        .map(|nth| same!(intervals::ticks(nth), |(due, at)| (due.as_millis(), at.as_millis())));
    assert!(bursts != delays && delays != skips);
    same!(intervals::intervals_that_are_reset(), |at| at.as_millis() / 10_000);
    assert_eq!(same!(clock::pausing()), [Duration::ZERO, HOUR, 2 * HOUR]);
    assert_eq!(same!(sleeps::advances_past_both()), [3 * HOUR, 3 * HOUR]);
    same!(clock::instants());
}

#[test]
fn polls_match_tokio() {
    same!(sleeps::small_advances());
    let resets = same!(sleeps::resets_around_the_deadline());
    assert!(resets.iter().any(|(ready, _)| *ready) && resets.iter().any(|(ready, _)| !ready));
    for behavior in 0..3 {
        same!(intervals::polled_intervals(behavior));
    }
    same!(sleeps::the_near_and_the_far());
    same!(timeouts::timeouts_at_the_limit());
    assert!(same!(turns::ready_polls_in_one_turn())[0] <= 128);
    same!(sleeps::random_sleeps());
    same!(sleeps::ready_sockets());
}

#[test]
fn ready_timers_let_other_tasks_run() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for nth in 0..5 {
        let theirs = runtime().block_on(theirs::turns::turns_before_another_task(nth));
        let ours = runtime().block_on(ours::turns::turns_before_another_task(nth));
        let paused = paused(ours::turns::turns_before_another_task(nth));
        assert!(ours <= 128 && theirs <= 128 && paused <= 128, "{nth}: {ours} {theirs} {paused}");
    }
}

#[test]
fn advances_run_the_same_tasks() {
    let seconds = |at: Duration| at.as_secs();
    let seen = same!(turns::delayed_ticks(0), seconds);
    assert_eq!(seen, [50, 100, 141, 141, 182, 182]);
    same!(turns::delayed_ticks(1), seconds);
}

#[test]
fn panics_match_tokio() {
    assert!(theirs::panics::pauses_without_a_clock().contains("outside the Tokio runtime"));
    assert_eq!(ours::panics::pauses_without_a_clock(), theirs::panics::pauses_without_a_clock());
    assert_eq!(paused(ours::panics::pauses_twice()), paused(theirs::panics::pauses_twice()));
    assert_eq!(
        paused(ours::panics::intervals_of_nothing()),
        paused(theirs::panics::intervals_of_nothing())
    );
    assert_eq!(theirs::panics::panics_name_the_caller(), [true; 8]);
    assert_eq!(ours::panics::panics_name_the_caller(), [true; 8]);
}

#[test]
fn differences_are_as_documented() {
    // Outside of a runtime.
    assert!(!theirs::differences::sleeps_outside_of_a_runtime());
    assert!(ours::differences::sleeps_outside_of_a_runtime());
    // What a runtime must enable.
    assert!(theirs::differences::sleeps_without_a_driver().contains("enable_time"));
    #[cfg(target_os = "linux")]
    assert!(ours::differences::sleeps_without_a_driver().contains("enable_io"));
    // An instant out of range.
    assert!(!paused(theirs::differences::an_instant_out_of_range()));
    assert!(paused(ours::differences::an_instant_out_of_range()));
    // A reset to the past.
    assert!(paused(theirs::differences::ready_after_a_reset_to_the_past()));
    assert!(!paused(ours::differences::ready_after_a_reset_to_the_past()));
    // Periods below 5 ms.
    let in_ms = |seen: Vec<Duration>| seen.iter().map(Duration::as_millis).collect::<Vec<_>>();
    assert_eq!(in_ms(paused(theirs::differences::short_periods())), [1, 2, 3]);
    assert_eq!(in_ms(paused(ours::differences::short_periods())), [1, 5, 6]);
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
