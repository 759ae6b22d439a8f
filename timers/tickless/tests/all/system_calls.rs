//! H1 (no system calls), H2 (no idle wakeups): which operations make system calls, which none.

use crate::support::{Rng, wait_until};
use std::process::Command;
use std::time::{Duration, Instant};
use tickless::driver::CpuId;
use tickless::stats::Stats;
use tickless::{Timeout, Timers};

/// Waits until the driver of the only base sleeps, and returns the counters.
fn settled(timers: &Timers) -> Stats {
    let mut last = timers.stats();
    wait_until("the drivers sleep", || {
        std::thread::sleep(Duration::from_millis(10));
        let now = timers.stats();
        // The driver of a base on which no timer was armed need not run.
        let sleeps = now.bases.iter().all(|b| b.sleeps > 0 || b.device.writes == 0);
        let is_settled = calls(&now) == calls(&last) && sleeps;
        last = now;
        is_settled
    });
    last
}

/// Wake calls, sleeps and device writes of all bases.
fn calls(stats: &Stats) -> (u64, u64, u64) {
    let sum = |of: fn(&tickless::stats::BaseStats) -> u64| stats.bases.iter().map(of).sum();
    (sum(|b| b.wake_calls), sum(|b| b.sleeps), sum(|b| b.device.writes))
}

/// A timer on each base that is due before all others.
fn sentinels(timers: &Timers) -> Vec<Timeout> {
    let bases = timers.stats().bases.len() as u16;
    let all = (0..bases).map(|base| timers.timeout(|_| {}).pinned(CpuId(base)));
    let all: Vec<Timeout> = all.collect();
    for sentinel in &all {
        sentinel.start(Duration::from_secs(60)).unwrap();
    }
    all
}

/// Arms, pushes out, pulls in, cancels and rearms timers, none of them for before `earliest`.
fn churn(timers: &Timers, rng: &mut Rng, pool: &[Timeout], rounds: u64) {
    let mut now = timers.now();
    for round in 0..rounds {
        if round % 64 == 0 {
            now = timers.now();
        }
        let timer = &pool[rng.below(pool.len() as u64) as usize];
        match rng.below(4) {
            0 => drop(timer.cancel()),
            1 => drop(timer.reduce(Duration::from_secs(100 + rng.below(1000)))),
            _ => drop(timer.start_from(now, Duration::from_secs(100 + rng.below(1000)))),
        }
    }
}

/// Goal: H1 (no system calls).
#[test]
fn a_steady_state_makes_no_system_call() {
    for bases in [1, 2] {
        let timers = Timers::builder().bases(bases).start().unwrap();
        let _sentinels = sentinels(&timers);
        let before = calls(&settled(&timers));
        let pool: Vec<Timeout> = (0..10_000).map(|_| timers.timeout(|_| {})).collect();
        churn(&timers, &mut Rng::new(7), &pool, 300_000);
        let stats = timers.stats();
        assert_eq!(calls(&stats), before, "wake calls, sleeps, device writes");
        assert!(stats.total().rearmed > 10_000 && stats.total().cancelled > 10_000);
        drop(pool);
        assert_eq!(calls(&timers.stats()), before, "dropping costs none either");
    }
}

/// Goal: H1 (no system calls).
#[test]
fn a_woken_driver_is_not_woken_again() {
    let timers = Timers::builder().bases(1).start().unwrap();
    settled(&timers);
    let pool: Vec<_> = (0..2000).map(|_| timers.hrtimer(|_| {})).collect();
    for (place, timer) in pool.iter().enumerate() {
        timer.start(Duration::from_millis(100_000 - place as u64)).unwrap();
    }
    let (wakes, _, writes) = calls(&timers.stats());
    // One more than the number of sleeps: it was asleep before the first.
    let checks = timers.stats().bases[0].device.events + 1;
    println!("{writes} device writes, {wakes} wake calls, the driver checked {checks} times");
    assert!((1..=checks).contains(&wakes), "{wakes} wake calls for {checks} checks");
    let earliest = timers.stats().bases[0].earliest;
    settled(&timers);
    assert_eq!(timers.stats().bases[0].earliest, earliest);
}

/// Goal: H2 (no idle wakeups): drivers without timers, or with distant ones only, do not wake.
#[test]
fn idle_drivers_sleep() {
    let timers = Timers::builder().bases(2).start().unwrap();
    stays_asleep(&timers);
    let _sentinels = sentinels(&timers);
    let far = timers.hrtimer(|_| {});
    far.start(Duration::from_secs(3600)).unwrap();
    stays_asleep(&timers);
}

/// Asserts that no driver wakes for a while. Repeats that on a busy machine, where a driver may go
/// to sleep late; a driver that wakes without a reason never sleeps that long.
fn stays_asleep(timers: &Timers) {
    let slept = |stats: &Stats| -> Vec<_> {
        stats.bases.iter().map(|base| (base.sleeps, base.device)).collect()
    };
    wait_until("no driver wakes for a while", || {
        let before = slept(&settled(timers));
        std::thread::sleep(Duration::from_millis(200));
        slept(&timers.stats()) == before
    });
}

/// The environment variable with a child process's number of rounds.
const ROUNDS: &str = "TICKLESS_TEST_ROUNDS";

/// Goal: H1 (no system calls) as the kernel counts it: a child process that arms and cancels half a
/// million times makes as many system calls, of all kinds and on all threads, as one that does not.
#[test]
fn the_kernel_sees_no_system_calls() {
    if let Ok(rounds) = std::env::var(ROUNDS) {
        return child(rounds.parse().unwrap());
    }
    // On a busy machine, threads that are held up wait for locks: other runs are not.
    for _ in 0..4 {
        let Some((none, many)) = traced(0).zip(traced(500_000)) else {
            println!("SKIPPED: strace is not here, or may not trace");
            return;
        };
        println!("{none} system calls without, {many} with 500,000 operations");
        // The allocator and the placement of the drivers make a difference of a few dozen.
        if many.abs_diff(none) < 1000 {
            return;
        }
    }
    panic!("operations make system calls in each of four runs");
}

fn child(rounds: u64) {
    let timers = Timers::builder().bases(1).start().unwrap();
    let _sentinels = sentinels(&timers);
    let pool: Vec<Timeout> = (0..10_000).map(|_| timers.timeout(|_| {})).collect();
    churn(&timers, &mut Rng::new(7), &pool, rounds);
}

/// Returns the number of system calls of a child process with this many rounds.
fn traced(rounds: u64) -> Option<u64> {
    let begun = Instant::now();
    let output = Command::new("strace")
        .args(["-f", "-c", "-U", "calls,name", "-o", "/dev/stderr"])
        .arg(std::env::current_exe().ok()?)
        .args(["--exact", "system_calls::the_kernel_sees_no_system_calls"])
        .env(ROUNDS, rounds.to_string())
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let total = report.lines().rev().find_map(|line| line.trim().strip_suffix("total"));
    let total = total.and_then(|calls| calls.trim().parse().ok());
    println!("{rounds} rounds: {total:?} system calls, {} ms", begun.elapsed().as_millis());
    if !output.status.success() || total.is_none() {
        println!("strace: {report}");
        return None;
    }
    total
}
