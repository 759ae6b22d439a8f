//! `tickless::tokio_time` compared with `tokio::time`: one test body runs against both.
//!
//! The results must be equal, except for the differences in the table in the module's
//! documentation, which must hold. Each topic has a file, a module of `ours` and `theirs`.

// Tests fail by panicking, and may sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)]
#![allow(clippy::duplicate_mod, clippy::panic, clippy::print_stderr, clippy::print_stdout)]

#[path = "../support/child.rs"]
mod child;
#[path = "../support/histories.rs"]
mod histories;
mod moved_clocks;
mod program;
mod runtimes;
mod virtual_time;
#[path = "../support/woken.rs"]
mod woken;

use histories::Rng;
use program::Kind;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tickless::tokio_time::run_in_virtual_time;
use tokio::runtime::{Builder, Runtime};

#[path = "."]
mod theirs {
    use tokio::time;

    pub mod clock;
    pub mod differences;
    pub mod panics;
    pub mod programs;
    pub mod sleeps;
    pub mod timeouts;
    pub mod turns;
}

#[path = "."]
mod ours {
    use tickless::tokio_time as time;

    pub mod clock;
    pub mod differences;
    pub mod panics;
    pub mod programs;
    pub mod sleeps;
    pub mod timeouts;
    pub mod turns;
}

/// What a task of a program has seen: its name, what happened, and when.
type Event = (String, String, Duration);

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

/// Runs a test in a process for each task. Returns the task in such a process.
fn alone(test: &str, tasks: &[&str]) -> Option<String> {
    const ALONE: &str = "TICKLESS_TEST_ALONE";
    std::env::var(ALONE).ok().or_else(|| {
        for task in tasks {
            let mut child = child::child_test(test, ALONE, task);
            assert!(child.status().unwrap().success(), "{test} {task}");
        }
        None
    })
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn paused_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Runs a body on tokio's current-thread runtime and its paused clock.
fn paused<F: Future>(body: F) -> F::Output {
    paused_runtime().block_on(body)
}

/// Runs a body on both clocks. Returns what ours has seen, which must be equal to what tokio's has
/// seen, each rounded by a function.
macro_rules! same {
    ($topic:ident::$body:ident) => {
        same!($topic::$body, |seen| seen)
    };
    ($topic:ident::$body:ident, $rounded:expr) => {{
        let ours: Vec<_> = paused(ours::$topic::$body()).into_iter().map($rounded).collect();
        let theirs = paused(theirs::$topic::$body()).into_iter().map($rounded);
        assert_eq!(ours, theirs.collect::<Vec<_>>(), stringify!($body));
        ours
    }};
}

#[test]
fn results_match_tokio() {
    let ends = same!(timeouts::timeouts, |(end, at)| (end, at.as_secs()));
    assert_eq!(ends[1].0, Err("deadline has elapsed".into()));
    assert_eq!(same!(clock::pausing), [Duration::ZERO, HOUR, 2 * HOUR]);
    same!(clock::instants);
    let ticks = same!(clock::ticks_after_two_advances);
    assert_eq!(ticks, [50, 141, 182].map(Duration::from_secs));
}

#[test]
fn polls_match_tokio() {
    same!(sleeps::small_advances);
    let resets = same!(sleeps::resets_around_the_deadline);
    assert!(resets.iter().any(|(ready, _)| *ready) && resets.iter().any(|(ready, _)| !ready));
    same!(sleeps::the_near_and_the_far);
    same!(timeouts::timeouts_at_the_limit);
    assert!(same!(turns::ready_polls_in_one_turn)[0] <= 128);
    same!(sleeps::ready_sockets);
}

/// Goal: on a paused clock, tasks see the same events, in the same order and at the same times.
///
/// Method: random programs of up to a minute. Where timers of one instant can fire in another order
/// (see the differences), the events of each instant are sorted.
#[test]
fn random_programs_match_tokio_on_a_paused_clock() {
    for seed in seeds(3_000) {
        let whole =
            Kind { unit: ms(1), units_max: 2_000, advances: true, resets: false, yields: true };
        let (kind, has_order) = match seed % 3 {
            0 => (whole, true),
            1 => (Kind { resets: true, ..whole }, false),
            _ => {
                let unit = Duration::from_nanos(100_003);
                (Kind { unit, advances: false, resets: true, ..whole }, false)
            }
        };
        let program = kind.program(&mut Rng::new(seed), 3);
        let mut theirs = paused(theirs::programs::run(program.clone()));
        let mut ours = paused(ours::programs::run(program.clone()));
        if !has_order {
            theirs.sort_by_key(by_time);
            ours.sort_by_key(by_time);
        }
        assert_eq!(ours, theirs, "TICKLESS_SEED={seed} repeats this: {program:#?}");
    }
}

/// Goal: tasks on several threads see the same events at the same times.
///
/// Method: ours runs on two workers in virtual time, tokio on its paused clock. A race between
/// threads at one instant can end in both ways, so one of five runs must be equal. What other tasks
/// see in the program's last instant is left out.
#[test]
fn random_programs_match_tokio_on_several_threads() {
    let kind = Kind { unit: ms(1), units_max: 2_000, advances: false, resets: true, yields: false };
    for seed in seeds(300) {
        let program = kind.program(&mut Rng::new(seed), 3);
        let seen = |mut seen: Vec<Event>| {
            let end = seen.iter().map(|(_, _, at)| *at).max();
            seen.retain(|(task, _, at)| task.is_empty() || Some(*at) < end);
            seen.sort_by_key(by_time);
            seen
        };
        let theirs = seen(paused(theirs::programs::run(program.clone())));
        let ours = |_| {
            let run = ours::programs::run(program.clone());
            seen(run_in_virtual_time(2, |_| run))
        };
        let all: Vec<_> = (0..5).map(ours).take_while(|ours| *ours != theirs).collect();
        if all.len() == 5 {
            assert_eq!(all[0], theirs, "TICKLESS_SEED={seed} repeats this: {program:#?}");
        }
    }
}

/// Goal: on a running clock, tasks see the same events as on a paused one, and none of them early.
///
/// Method: many programs at once, in runtimes of one and of two threads. Where two deadlines are
/// close to each other, or the machine is busy, the ends of a program differ: as often with tokio.
#[test]
fn random_programs_match_tokio_in_real_time() {
    const COUNT: u64 = 100;
    let kind = Kind { unit: ms(7), units_max: 40, advances: false, resets: true, yields: true };
    let programs: Vec<_> = (0..COUNT).map(|seed| kind.program(&mut Rng::new(seed), 2)).collect();
    let models = programs.iter().map(|program| paused(theirs::programs::run(program.clone())));
    let models: Vec<_> = models.map(by_task).collect();
    for threads in [1, 2] {
        let runtime = || match threads {
            1 => current_thread(),
            _ => multi_thread(),
        };
        let same = |seen: Vec<Vec<Event>>| {
            let equal = seen.into_iter().map(by_task).zip(&models).filter(|(seen, model)| {
                let what = |seen: &[Event]| -> Vec<_> {
                    let until_due = |what: &str| what.split(" tick").next().unwrap().to_owned();
                    seen.iter().map(|(task, what, _)| (task.clone(), until_due(what))).collect()
                };
                let is_equal = what(seen) == what(model);
                let late = seen.iter().zip(*model).all(|(seen, model)| seen.2 >= model.2);
                assert!(!is_equal || late, "an event is early: {seen:#?} {model:#?}");
                is_equal
            });
            equal.count() as u64
        };
        let ours = programs.iter().map(|program| ours::programs::run(program.clone()));
        let ours = same(runtime().block_on(together(ours)));
        let theirs = programs.iter().map(|program| theirs::programs::run(program.clone()));
        let theirs = same(runtime().block_on(together(theirs)));
        assert!(ours >= COUNT / 2 && ours + COUNT / 10 >= theirs, "{ours} and {theirs} of {COUNT}");
    }
}

/// Runs futures at the same time, each in a task.
async fn together<F>(futures: impl Iterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = futures.map(tokio::spawn).collect();
    let mut outputs = Vec::new();
    for task in tasks {
        outputs.push(task.await.unwrap());
    }
    outputs
}

fn by_time((task, _, at): &Event) -> (Duration, String) {
    (*at, task.clone())
}

fn by_task(mut seen: Vec<Event>) -> Vec<Event> {
    seen.sort_by_key(|(task, _, _)| task.clone());
    seen
}

/// The seeds of random programs: the one in `TICKLESS_SEED`, or this many.
fn seeds(count: u64) -> std::ops::Range<u64> {
    histories::given("TICKLESS_SEED").map_or(0..count, |seed| seed..seed + 1)
}

#[test]
fn ready_timers_let_other_tasks_run() {
    for nth in 0..5 {
        let theirs = current_thread().block_on(theirs::turns::turns_before_another_task(nth));
        let ours = current_thread().block_on(ours::turns::turns_before_another_task(nth));
        let paused = paused(ours::turns::turns_before_another_task(nth));
        assert!(ours <= 128 && theirs <= 128 && paused <= 128, "{nth}: {ours} {theirs} {paused}");
    }
}

/// Goal: on a running clock, each sleep of no time lets other tasks run, as each of tokio's does,
/// which takes a millisecond. On a paused clock it is ready at once with both.
#[test]
fn sleeps_of_no_time_let_other_tasks_run() {
    let ours = current_thread().block_on(ours::turns::turns_during_sleeps());
    let theirs = current_thread().block_on(theirs::turns::turns_during_sleeps());
    let is_shared = |turns: &[u64]| turns.iter().zip([1, 10, 100]).all(|(seen, of)| *seen >= of);
    assert!(is_shared(&ours) && is_shared(&theirs), "{ours:?} {theirs:?}");
    same!(turns::turns_during_sleeps);
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
    assert_eq!(theirs::panics::panics_name_the_caller(), [true; 7]);
    assert_eq!(ours::panics::panics_name_the_caller(), [true; 7]);
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
    assert!(!theirs::differences::timeouts_without_a_driver());
    // An instant out of range.
    assert!(!paused(theirs::differences::an_instant_out_of_range()));
    assert!(paused(ours::differences::an_instant_out_of_range()));
    // A reset to the past.
    assert!(paused(theirs::differences::ready_after_a_reset_to_the_past()));
    assert!(!paused(ours::differences::ready_after_a_reset_to_the_past()));
    // The order within a millisecond, and after a reset.
    assert_eq!(paused(theirs::differences::order_within_a_millisecond()), [1_600, 1_200]);
    assert_eq!(paused(ours::differences::order_within_a_millisecond()), [1_200, 1_600]);
    assert_eq!(paused(theirs::differences::order_after_a_reset()), ["other", "reset"]);
    assert_eq!(paused(ours::differences::order_after_a_reset()), ["reset", "other"]);
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
    let runtime = current_thread();
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
