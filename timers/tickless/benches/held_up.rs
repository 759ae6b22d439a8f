//! How long `start` and `cancel_sync` take on another thread while very many timers come due on its
//! base, compared with a quiet base, in alternating rounds; and compared with a base without due
//! timers on which one more thread arms timers. The last case shows the cost of moving a base's
//! lock and cache lines between CPUs, which a bound on the time of holding the lock cannot remove.
//!
//! A call takes a scheduler's time slice, some milliseconds, if its thread or the driver, which may
//! hold the lock, loses its CPU. The last column is the longest call without the time for which
//! threads of this process waited for a CPU, on Linux.
//!
//! `cargo bench -p tickless --bench held_up [-- ROUNDS]`, on an idle machine: on a busy one the
//! scheduler determines both tails. Without `--bench` it runs briefly, so that CI executes the
//! code. In both modes it asserts the bound on the number of timers moved under one lock.

// A bench fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::{Timeout, Timers};

/// The distance at which all timers are first armed: long enough to arm a million, or a few in an
/// unoptimised run, which is a test.
const FIRST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 2_000 });
/// The distance to which they are pushed out: far enough to leave their bucket.
const THEN: Duration = Duration::from_secs(600);

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let rounds = std::env::args().rev().find_map(|arg| arg.parse().ok()).unwrap_or(3);
    let (count, rounds) = if is_bench { (1_000_000, rounds) } else { (5_000, 1) };
    println!("{:50}     p50     p99   p99.9  p99.99      max  running   calls", "ns");
    for _ in 0..rounds {
        let quiet = round("quiet", Beside::Nothing);
        let shared = round("another thread arms and cancels", Beside::Thread);
        for (name, beside) in
            [("timers are moved", Beside::PushedOut(count)), ("timers fire", Beside::Firing(count))]
        {
            let busy = round(&format!("{count} {name}"), beside);
            let times = |beside: &[u64; 2]| {
                [0, 1].map(|call| format!("{:.1}", busy[call] as f64 / beside[call] as f64))
            };
            let (quiet, shared) = (times(&quiet), times(&shared));
            println!("p99.99 of start and cancel_sync: {quiet:?} of quiet, {shared:?} of shared");
        }
    }
}

/// The load beside the thread whose calls are measured.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// A thread arms and cancels a timer of its own.
    Thread,
    /// This many pushed-out timers come due.
    PushedOut(u64),
    /// This many timers fire in one tick.
    Firing(u64),
}

/// Measures and shows a case. Returns the 99.99th percentile of each call.
fn round(name: &str, beside: Beside) -> [u64; 2] {
    let timers = Timers::builder().bases(1).start().expect("a driver can be started");
    let is_over = AtomicBool::new(false);
    let calls = std::thread::scope(|scope| {
        if beside == Beside::Thread {
            scope.spawn(|| {
                let timeout = timers.timeout(|_| ());
                while !is_over.load(Ordering::Relaxed) {
                    timeout.start(FIRST).expect("not shut down");
                    timeout.cancel();
                }
            });
        }
        let calls = measured(&timers, beside);
        is_over.store(true, Ordering::Relaxed);
        calls
    });
    let mut names = ["start", "cancel_sync"].into_iter();
    calls.map(|mut call| {
        call.took.sort_unstable();
        print!("{:50}", format!("{}: {name}", names.next().unwrap_or_default()));
        for part in [5_000, 9_900, 9_990, 9_999] {
            print!(" {:7}", at(&call.took, part));
        }
        println!(" {:8} {:8} {:7}", at(&call.took, 10_000), call.running_max, call.took.len());
        at(&call.took, 9_999)
    })
}

/// How long calls took.
#[derive(Default)]
struct Calls {
    took: Vec<u64>,
    /// The longest one, without the time for which a thread waited for a CPU.
    running_max: u64,
}

/// Measures each call. If timers come due, from shortly before until all have been moved or fired.
fn measured(timers: &Timers, beside: Beside) -> [Calls; 2] {
    let (moved, firing) = match beside {
        Beside::PushedOut(count) => (count, 0),
        Beside::Firing(count) => (0, count),
        Beside::Nothing | Beside::Thread => (0, 0),
    };
    let begun = timers.now();
    let timeouts: Vec<Timeout> = (0..moved + firing).map(|_| timers.timeout(|_| ())).collect();
    for timeout in &timeouts {
        timeout.start_at(begun + FIRST).expect("not shut down");
    }
    for timeout in &timeouts[..moved as usize] {
        timeout.start_at(begun + THEN).expect("not shut down");
    }
    let spare = timers.timeout(|_| ());
    let from = (begun + FIRST).max(timers.now());
    // Timers that were pushed out are moved once their driver has a reason to wake.
    let wake = timers.timeout(|_| ());
    wake.start_at(from + Duration::from_millis(20)).expect("not shut down");
    let end = from + Duration::from_millis(if moved + firing == 0 { 300 } else { 3_000 });
    let mut calls = <[Calls; 2]>::default();
    std::thread::sleep((from - timers.now()).max(Duration::ZERO));
    let mut waited = wait_for_cpus();
    for round in 1.. {
        let now = timers.now();
        let begun = std::time::Instant::now();
        spare.start_from(now, FIRST).expect("not shut down");
        let started = begun.elapsed();
        spare.cancel_sync().expect("not in a callback");
        let both = begun.elapsed();
        let took = [started, both - started].map(|took| took.as_nanos() as u64);
        let mut waits = 0;
        if both > Duration::from_micros(50) {
            waits = wait_for_cpus() - waited;
            waited += waits;
        }
        for (calls, took) in calls.iter_mut().zip(took) {
            calls.took.push(took);
            calls.running_max = calls.running_max.max(took.saturating_sub(waits));
        }
        // Checked only now and then, because the check takes the lock.
        let is_through = round % 20_000 == 0 && moved + firing > 0 && {
            let base = timers.stats().bases[0];
            base.relocated >= moved && base.counts.fired > firing
        };
        if now >= end || is_through {
            break;
        }
    }
    let base = timers.stats().bases[0];
    assert!(base.longest_holding <= 64, "{} timers in one holding", base.longest_holding);
    assert!(base.relocated >= moved && base.counts.fired >= firing, "{base:?}");
    calls
}

/// The time for which the threads of this process have waited for a CPU, in ns; 0 if unknown.
fn wait_for_cpus() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let waits = tasks.map(|task| {
        let figures = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        figures.split(' ').nth(1).and_then(|wait| wait.parse().ok()).unwrap_or(0)
    });
    waits.sum()
}

fn at(took: &[u64], per_10_000: usize) -> u64 {
    took.get(took.len() * per_10_000 / 10_000).or(took.last()).copied().unwrap_or(0)
}
