//! The lateness of a precise timer compared with `Condvar::wait_timeout`, in alternating rounds, on
//! the platform for which the library was built. For the portable platform:
//!
//! ```text
//! RUSTFLAGS="--cfg tickless_portable" cargo bench -p tickless --bench lateness
//! ```
//!
//! Under `cargo test` it runs briefly, and asserts that no timer is early.

// A bench fails by panicking, and prints.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use tickless::{HrTimer, Timers};

/// How late a thread wakes that waits on a condition variable without a notification.
fn condvar(after: Duration) -> Duration {
    let (lock, condvar) = (Mutex::new(()), Condvar::new());
    let due = Instant::now() + after;
    let mut guard = lock.lock().expect("no other thread uses it");
    loop {
        let now = Instant::now();
        if now >= due {
            return now - due;
        }
        guard = condvar.wait_timeout(guard, due - now).expect("no other thread uses it").0;
    }
}

/// How late our callback runs.
fn timer(timers: &Timers, after: Duration) -> Duration {
    let (send, receive) = channel();
    let timer: HrTimer = timers.hrtimer(move |_| send.send(Instant::now()).unwrap_or(()));
    let due = Instant::now() + after;
    timer.start(after).expect("not shut down");
    receive.recv().expect("it fires").checked_duration_since(due).expect("never early")
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let timers = Timers::process().expect("threads can be had");
    let quantile = |late: &mut Vec<Duration>, q: usize| {
        late.sort();
        late[late.len() * q / 100].as_nanos() as f64 / 1e3
    };
    println!("late by, in us      ours p50    p99   condvar p50    p99   p50 / p50");
    for after_us in [100, 250, 1_000, 5_000] {
        let after = Duration::from_micros(after_us);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..if is_bench { 1_000 } else { 10 } {
            if round % 2 == 0 {
                ours.push(timer(&timers, after));
                theirs.push(condvar(after));
            } else {
                theirs.push(condvar(after));
                ours.push(timer(&timers, after));
            }
        }
        let [a, b] = [50, 99].map(|q| quantile(&mut ours, q));
        let [c, d] = [50, 99].map(|q| quantile(&mut theirs, q));
        println!("after {after_us:>5} us {a:>12.1} {b:>6.1} {c:>13.1} {d:>6.1} {:>11.2}", a / c);
    }
}
