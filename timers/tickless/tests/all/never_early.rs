//! W1 (never early): no timer fires early on any clock.

use crate::support::{Rng, seed, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickless::local::future::Sleeps;
use tickless::local::{FixedTimeouts, system_clock};
use tickless::{Builder, LocalTimers, Timers};

/// Counts expiries, and those that were early by any of the clocks.
#[derive(Default)]
struct Tally {
    fired: AtomicU64,
    early: AtomicU64,
}

impl Tally {
    fn count(&self, is_early: bool) {
        self.early.fetch_add(u64::from(is_early), Ordering::Relaxed);
        self.fired.fetch_add(1, Ordering::Relaxed);
    }
}

/// Arms thousands of timers of both kinds, over a quarter of a second, rearms some of them while
/// they are pending, and waits for all of them.
fn thousands(builder: Builder, mut rng: Rng, is_exact: bool) {
    let timers = builder.start().unwrap();
    let tally = Arc::new(Tally::default());
    let (mut timeouts, mut hrtimers) = (Vec::new(), Vec::new());
    for at in 0..3000u64 {
        let after = Duration::from_nanos(rng.of_any_size(28));
        // Armed first for later, for the same time, or for half of it, in which case it may fire
        // before it is rearmed.
        let first = [after * 3, after, after / 2][rng.below(3) as usize];
        let least = if at % 2 == 0 { first.min(after) } else { after };
        // The deadline by this set's clock, and by the system's.
        let (due, begun) = (timers.now() + least, Instant::now());
        let counts = Arc::clone(&tally);
        let check = move |f: &mut tickless::Fired<'_>| {
            let by_system = is_exact && begun.elapsed() < least;
            counts.count(f.now() < due || f.found_at() < f.deadline() || by_system);
        };
        if at % 2 == 0 {
            let timer = timers.timeout(check);
            timer.start(first).unwrap();
            timer.start(after).unwrap();
            timeouts.push(timer);
        } else {
            let timer = timers.hrtimer(check);
            let slack = Duration::from_nanos(rng.of_any_size(21));
            timer.start_with_slack(after, slack).unwrap();
            hrtimers.push(timer);
        }
    }
    wait_until("all have fired", || timers.stats().pending() == 0);
    let total = timers.stats().total();
    drop((timeouts, hrtimers));
    // Timers that were due before they were rearmed have fired twice.
    assert_eq!(tally.fired.load(Ordering::Relaxed), total.fired);
    assert_eq!((total.armed, total.cancelled), (total.fired, 0));
    assert_eq!(tally.early.load(Ordering::Relaxed), 0, "of {} were early", total.fired);
}

/// Goal: W1 (never early), by the timers' own clock and by the system's.
#[test]
fn no_timer_is_early() {
    let seed = seed("never_early", "no_timer_is_early");
    thousands(Timers::builder().bases(2), Rng::new(seed), false);
    thousands(Timers::builder().bases(2).system_clock(), Rng::new(!seed), true);
}

const AFTER: Duration = Duration::from_millis(3);

/// Works for twice as long as the timers that are armed afterwards take.
fn work() -> Instant {
    let begun = Instant::now();
    while begun.elapsed() < 2 * AFTER {}
    Instant::now()
}

/// Goal: W1 (never early) by the system's clock, for durations that are given late in a long turn
/// of a one-thread loop: the time of the last advance is then older than the call.
#[test]
fn no_timer_of_a_long_turn_is_early() {
    let mut timers = LocalTimers::new(system_clock());
    let keys = [timers.insert(()).unwrap(), timers.insert_precise(()).unwrap()];
    for key in keys.into_iter().cycle().take(6) {
        let begun = work();
        timers.start(key, AFTER).unwrap();
        while timers.advance(timers.now(), |_, _| ()) == 0 {}
        assert!(begun.elapsed() >= AFTER, "{:?}", begun.elapsed());
    }
    let mut timeouts = FixedTimeouts::new(system_clock());
    let class = timeouts.add_class(AFTER).unwrap();
    let key = timeouts.insert(class, ()).unwrap();
    for restarts in [false, true, false, true] {
        let mut begun = work();
        timeouts.start(key).unwrap();
        if restarts {
            begun = work();
            timeouts.start(key).unwrap();
        }
        while timeouts.advance(timeouts.now(), |_, _| ()) == 0 {}
        assert!(begun.elapsed() >= AFTER, "{:?}", begun.elapsed());
    }
}

/// The same for tasks.
#[test]
fn no_sleep_of_a_long_poll_is_early() {
    let sleeps = Sleeps::new(system_clock());
    let timers = sleeps.handle();
    let task = async {
        for kind in 0..12 {
            let mut moved = timers.coarse_sleep(1000 * AFTER);
            let begun = work();
            match kind % 4 {
                0 => timers.sleep(AFTER).await,
                1 => _ = timers.timeout(AFTER, std::future::pending::<()>()).await,
                2 => _ = timers.interval(AFTER).tick().await,
                _ => {
                    moved.reset(AFTER);
                    moved.await;
                }
            }
            assert!(begun.elapsed() >= AFTER, "{kind}: {:?}", begun.elapsed());
        }
    };
    let sleep_until = |deadline| {
        while sleeps.now() < deadline {}
        std::future::ready(())
    };
    pollster::block_on(sleeps.drive(task, || sleeps.now(), sleep_until));
}
