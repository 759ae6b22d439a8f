//! How long `start` takes on another thread while very many pushed-out timers come due on its base,
//! compared with a quiet base, in alternating rounds; and compared with a base without due timers
//! on which one more thread arms timers. The last case shows the cost of moving a base's lock and
//! cache lines between CPUs, which a bound on the time that the lock is held cannot remove.
//!
//! `cargo bench -p tickless --bench held_up [-- ROUNDS]`, on an idle machine: on a busy one the
//! scheduler determines both tails. Without `--bench` it runs briefly, so that CI executes the
//! code. In both modes it asserts the bound on the number of timers moved under one lock.

// A bench fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::time::Instant;
use tickless::{Timeout, Timers};

/// The distance at which all timers are first armed.
const FIRST: Duration = Duration::from_secs(2);
/// The distance to which they are pushed out: far enough to leave their bucket.
const THEN: Duration = Duration::from_secs(600);

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let rounds = std::env::args().rev().find_map(|arg| arg.parse().ok()).unwrap_or(3);
    let (count, rounds) = if is_bench { (1_000_000, rounds) } else { (5_000, 1) };
    println!(
        "`start` from another thread, ns        p50      p99    p99.9   p99.99      max  starts"
    );
    for _ in 0..rounds {
        let quiet = round(Beside::Nothing);
        show("quiet", &quiet);
        let shared = round(Beside::Thread);
        show("another thread arms and cancels", &shared);
        let busy = round(Beside::Due(count));
        show(&format!("{count} timers come due"), &busy);
        let times = |beside| at(&busy, 9_999) as f64 / at(beside, 9_999) as f64;
        println!("p99.99: {:.1} of quiet, {:.1} of shared", times(&quiet), times(&shared));
    }
}

/// The load beside the thread whose `start` is measured.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// A thread arms and cancels a timer of its own.
    Thread,
    /// This many pushed-out timers come due.
    Due(u64),
}

/// Returns how long each `start` took, sorted. If timers come due, measures from shortly before
/// until all have been moved.
fn round(beside: Beside) -> Vec<u64> {
    let timers = Timers::builder().bases(1).start().expect("a driver can be started");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if beside == Beside::Thread {
            scope.spawn(|| {
                let timeout = timers.timeout(|_| ());
                while !is_over.load(Ordering::Relaxed) {
                    timeout.start(FIRST).expect("not shut down");
                    timeout.cancel();
                }
            });
        }
        let took = measured(&timers, if let Beside::Due(count) = beside { count } else { 0 });
        is_over.store(true, Ordering::Relaxed);
        took
    })
}

fn measured(timers: &Timers, count: u64) -> Vec<u64> {
    let begun = timers.now();
    let timeouts: Vec<Timeout> = (0..count).map(|_| timers.timeout(|_| ())).collect();
    for timeout in &timeouts {
        timeout.start_at(begun + FIRST).expect("not shut down");
    }
    for timeout in &timeouts {
        timeout.start_at(begun + THEN).expect("not shut down");
    }
    let spare = timers.timeout(|_| ());
    let from = (begun + FIRST).max(timers.now()) + Duration::from_millis(20);
    let mut took = Vec::with_capacity(1 << 23);
    // The due timers are in one bucket, and are moved once their driver has a reason to wake.
    let wake = timers.timeout(|_| ());
    wake.start_at(from).expect("not shut down");
    let end = from + Duration::from_millis(if count == 0 { 300 } else { 3_000 });
    loop {
        let now = timers.now();
        if now >= from {
            let before = std::time::Instant::now();
            spare.start_from(now, FIRST).expect("not shut down");
            took.push(before.elapsed().as_nanos() as u64);
            spare.cancel();
        }
        if now >= end || is_through(timers, count, took.len(), now, from) {
            break;
        }
    }
    let stats = timers.stats();
    let longest = stats.bases[0].longest_holding;
    assert!(longest <= 64, "{longest} timers in one holding of the lock");
    assert!(
        count == 0 || stats.bases[0].relocated >= count,
        "{:?} moved",
        stats.bases[0].relocated
    );
    took.sort_unstable();
    took
}

/// Returns whether all timers have been moved. Checks only now and then, because the check takes
/// the lock.
fn is_through(timers: &Timers, count: u64, starts: usize, now: Instant, from: Instant) -> bool {
    let is_time = count > 0 && starts % 20_000 == 19_999 && now >= from;
    is_time && timers.stats().bases[0].relocated >= count
}

fn at(took: &[u64], per_10_000: usize) -> u64 {
    took.get(took.len() * per_10_000 / 10_000).or(took.last()).copied().unwrap_or(0)
}

fn show(name: &str, took: &[u64]) {
    print!("{name:31}");
    for part in [5_000, 9_900, 9_990, 9_999, 10_000] {
        print!(" {:8}", at(took, part));
    }
    println!("  {}", took.len());
}
