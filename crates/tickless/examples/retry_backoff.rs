//! A retry policy, and tests of it that take days of virtual time and no real time.
//!
//! The policy tries an operation until it succeeds: again after a second, then two, then four, at
//! most every five minutes, and gives up after a day. It takes [`Timers`], and works on a real and
//! on a virtual clock. It comes as callbacks, and as a future with jitter, so that clients that
//! fail together do not retry together.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless::callback::StartError;
use tickless::{HrTimer, Timers, VirtualTime};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(86_400);

/// Retries until `attempt` returns `true` or a day has passed. Dropping it stops the retries.
struct Retry {
    _timer: HrTimer,
}

impl Retry {
    fn start(
        timers: &Timers,
        mut attempt: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Retry, StartError> {
        let (give_up, mut pause) = (timers.now() + DAY, FIRST);
        let timer = timers.hrtimer(move |fired| {
            if attempt() || fired.now() + pause > give_up {
                return;
            }
            fired.restart(pause);
            pause = (pause * 2).min(LONGEST);
        });
        timer.start(Duration::ZERO)?;
        Ok(Retry { _timer: timer })
    }
}

/// Retries as a future. Each attempt may take ten seconds, and each pause is between half and all
/// of its length, by `chance`, which returns numbers from 0 to 1.
async fn retry<T, F: Future<Output = Option<T>>>(
    timers: &Timers,
    mut chance: impl FnMut() -> f64,
    mut attempt: impl FnMut() -> F,
) -> Option<T> {
    let (give_up, mut pause) = (timers.now() + DAY, FIRST);
    loop {
        if let Ok(Some(done)) = timers.timeout_after(Duration::from_secs(10), attempt()).await {
            return Some(done);
        }
        let jittered = pause.mul_f64(0.5 + chance() / 2.0);
        if timers.now() + jittered > give_up {
            return None;
        }
        timers.sleep(jittered).slack(Duration::ZERO).await;
        pause = (pause * 2).min(LONGEST);
    }
}

fn main() {
    the_fifth_attempt_succeeds();
    retries_end_after_a_day();
    dropping_stops_the_retries();
    jitter_spreads_the_clients();
    a_hanging_server_costs_ten_seconds();
    println!("days of retries are over");
}

/// Returns when each attempt is made, if the `works`-th succeeds.
fn attempts(time: &VirtualTime, works: usize) -> (Retry, Arc<Mutex<Vec<Duration>>>) {
    let (begin, made) = (time.now(), Arc::new(Mutex::new(Vec::new())));
    let (log, clock) = (Arc::clone(&made), time.clone());
    let retry = Retry::start(time.timers(), move || {
        let mut log = log.lock().expect("no attempt panics");
        log.push(clock.now() - begin);
        log.len() == works
    });
    (retry.expect("the timer has not been shut down"), made)
}

#[cfg_attr(test, test)]
fn the_fifth_attempt_succeeds() {
    let time = VirtualTime::new();
    let (_retry, made) = attempts(&time, 5);
    time.advance(DAY * 2);
    assert_eq!(*made.lock().unwrap(), [0, 1, 3, 7, 15].map(Duration::from_secs));
    time.assert_idle();
}

/// The pauses grow to five minutes and no longer, and end after a day.
#[cfg_attr(test, test)]
fn retries_end_after_a_day() {
    let time = VirtualTime::new();
    let (_retry, made) = attempts(&time, usize::MAX);
    time.advance(DAY * 2);
    let made = made.lock().unwrap().clone();
    let pauses: Vec<Duration> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses[..9], [1, 2, 4, 8, 16, 32, 64, 128, 256].map(Duration::from_secs));
    assert!(pauses[9..].iter().all(|&pause| pause == LONGEST));
    assert!(made.last().is_some_and(|&last| last <= DAY && last + LONGEST > DAY));
    time.assert_idle();
}

#[cfg_attr(test, test)]
fn dropping_stops_the_retries() {
    let time = VirtualTime::new();
    let (retry, made) = attempts(&time, usize::MAX);
    time.advance(Duration::from_secs(10));
    drop(retry);
    time.advance(DAY);
    assert_eq!(made.lock().unwrap().len(), 4);
    time.assert_idle();
}

/// Jitter for tests: steps of the golden ratio, which are spread evenly.
fn chance(seed: u32) -> impl FnMut() -> f64 {
    let mut at = f64::from(seed) * 0.618_033_988_749_895;
    move || {
        at = (at + 0.618_033_988_749_895).fract();
        at
    }
}

/// A hundred clients lose their server at the same time, and each retries on its own thread. The
/// server is back after an hour. The clock advances automatically whenever all of them wait.
#[cfg_attr(test, test)]
fn jitter_spreads_the_clients() {
    let time = VirtualTime::shuffled();
    let begin = time.now();
    let back = begin + Duration::from_secs(3600);
    let mut reached: Vec<Duration> = std::thread::scope(|s| {
        // All guards exist before the first thread starts, so the clock does not advance until
        // then.
        let guards: Vec<_> = (0..100).map(|_| time.busy()).collect();
        let clients = (0..).zip(guards).map(|(client, guard)| {
            let time = &time;
            s.spawn(move || {
                let timers = time.timers();
                let attempt = || async { (timers.now() >= back).then(|| timers.now() - begin) };
                let mut guard = Some(guard);
                time.block_on(async {
                    drop(guard.take());
                    retry(timers, chance(client), attempt).await
                })
            })
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().filter_map(|client| client.join().expect("none panics")).collect()
    });
    reached.sort();
    assert_eq!(reached.len(), 100, "all reached it");
    assert!(reached[99] <= Duration::from_secs(3600) + LONGEST);
    let busiest = reached.chunk_by(|a, b| *b - *a < Duration::from_millis(100));
    assert!(busiest.map(<[_]>::len).max() < Some(10), "{reached:?}");
    time.assert_idle();
}

/// An attempt that never completes is abandoned, and the next one made.
#[cfg_attr(test, test)]
fn a_hanging_server_costs_ten_seconds() {
    let (time, mut tries) = (VirtualTime::new(), 0);
    let begin = time.now();
    let attempt = || {
        tries += 1;
        let hangs = tries < 3;
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Some("done")
        }
    };
    assert_eq!(time.block_on(retry(time.timers(), || 1.0, attempt)), Some("done"));
    // Two attempts of ten seconds, which end up to 13 % later, and pauses of one and two seconds.
    let took = time.now() - begin;
    assert!(took >= Duration::from_secs(23) && took < Duration::from_secs(26), "{took:?}");
    time.assert_idle();
}
