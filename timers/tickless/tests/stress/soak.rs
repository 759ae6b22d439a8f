//! Endurance: runs the stress test repeatedly in one process, with threads that end while their
//! thread-locals own timers, and forked children. Memory must not grow, and counters must agree.
//!
//! `cargo test` runs it for two seconds; `TICKLESS_SOAK_SECONDS` sets another duration.

use crate::in_child::in_child;
use crate::support::histories::{given, hush};
use crate::support::{Rng, seed};
use crate::{setups, stress_printing_failures};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickless::{Timeout, Timers};

/// The tolerated growth after the first rounds: allocators keep memory that was freed.
const GROWTH_MAX_KB: u64 = 16 * 1024;
const WARM_UP: u64 = 5;

/// Timers in a thread-local. Its destructor rearms and drops them, and cancels every third.
struct Kept(Vec<Timeout>);

impl Drop for Kept {
    fn drop(&mut self) {
        for (at, timer) in self.0.drain(..).enumerate() {
            let _ = timer.start(Duration::from_micros(at as u64));
            if at % 3 == 0 {
                timer.cancel_sync().unwrap();
            }
        }
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// Starts threads that end. Each arming of theirs must end, and each expiry be one call.
fn threads_come_and_go(timers: &Timers, rng: &mut Rng) -> u64 {
    let calls = Arc::new(AtomicU64::new(0));
    let before = timers.stats().total();
    for _ in 0..4 {
        std::thread::scope(|s| {
            let start = |_| {
                s.spawn(|| {
                    for at in 0..20 {
                        let calls = Arc::clone(&calls);
                        let timer =
                            timers.timeout(move |_| _ = calls.fetch_add(1, Ordering::Relaxed));
                        timer.start(Duration::from_micros(at * 300)).unwrap();
                        KEPT.with_borrow_mut(|kept| kept.0.push(timer));
                    }
                })
            };
            let threads: Vec<_> = (0..1 + rng.below(8)).map(start).collect();
            // The end of the scope waits for closures; only joining waits for thread-locals.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
    let after = timers.stats();
    let (armed, fired) = (after.total().armed - before.armed, after.total().fired - before.fired);
    let cancelled = after.total().cancelled - before.cancelled;
    assert_eq!((after.pending(), armed), (0, fired + cancelled), "each arming has one end");
    assert_eq!(fired, calls.load(Ordering::Relaxed), "each firing is one call");
    armed
}

/// Forks a child, in which the parent's timers are abandoned, dropped in a callback's frame, and
/// dropped by the child itself.
fn fork_amid(timers: &Timers) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let timer = timers.timeout(|_| {});
            while !is_over.load(Ordering::Relaxed) {
                timer.start(Duration::from_micros(50)).unwrap();
                timer.cancel();
            }
        });
        let own = timers.hrtimer(|_| {});
        own.start(Duration::from_secs(3600)).unwrap();
        let mut mine = Some(own);
        in_child(|| {
            let own = mine.take().expect("the child has a copy");
            assert!(own.start(Duration::from_millis(1)).is_err());
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The resident memory of the process, in KiB.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Goal: X10 (fires or is cancelled), H3 (panics), H4 (forks, exits, drops) over a long time.
#[test]
fn endurance() {
    let seconds = given("TICKLESS_SOAK_SECONDS").unwrap_or(2);
    let seed = seed("stress", "endurance");
    hush();
    let mut rng = Rng::new(seed);
    let begun = Instant::now();
    let (mut rounds, mut armings, mut flat) = (0_u64, 0_u64, 0_u64);
    let mut report = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) || rounds <= WARM_UP {
        let timers = Timers::builder().bases(2).start().unwrap();
        armings += threads_come_and_go(&timers, &mut rng);
        fork_amid(&timers);
        drop(timers);
        let setup = rng.below(5) as usize;
        let builder = setups().into_iter().nth(setup).unwrap();
        let operations = if seconds > 10 { 400_000 } else { 20_000 };
        let total = stress_printing_failures(builder, rng.next(), operations).total();
        armings += total.armed + total.rearmed;
        rounds += 1;
        let now = resident_kb();
        if rounds == WARM_UP {
            flat = now;
        }
        if rounds > WARM_UP {
            assert!(
                now < flat + GROWTH_MAX_KB,
                "{flat} KiB after {WARM_UP} rounds, {now} after {rounds}"
            );
        }
        if report.elapsed() > Duration::from_secs(60) {
            report = Instant::now();
            println!("{:?}: {rounds} rounds, {armings} armings, {now} KiB", begun.elapsed());
        }
    }
    println!(
        "{:?}: {rounds} rounds, {armings} armings, {flat} KiB, then {}",
        begun.elapsed(),
        resident_kb()
    );
}
