//! Drivers that wake before a deadline and spin: never early, and no longer than configured.

use crate::support::{MS, shared_count, wait_until};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tickless::driver::Wakeup;
use tickless::time::Instant;
use tickless::{HrTimer, Timers};

/// A timer that fires at an interval, and the measurements of its callback.
struct Cycle {
    timers: Timers,
    timer: HrTimer,
    seen: Arc<Seen>,
    begun: Instant,
}

#[derive(Default)]
struct Seen {
    fired: AtomicU64,
    early: AtomicU64,
    /// The CPU time of the driver's thread.
    schedstat: OnceLock<PathBuf>,
}

impl Cycle {
    fn start(wakeup: Wakeup, interval: Duration) -> Cycle {
        let builder = Timers::builder().bases(1).wakeup(wakeup);
        let timers = builder.start().expect("one driver starts");
        let seen = Arc::new(Seen::default());
        let noted = Arc::clone(&seen);
        let timer = timers.hrtimer(move |fired| {
            noted.schedstat.get_or_init(|| {
                let thread = std::fs::canonicalize("/proc/thread-self").unwrap_or_default();
                thread.join("schedstat")
            });
            let is_early = fired.now() < fired.deadline();
            noted.early.fetch_add(u64::from(is_early), Ordering::Relaxed);
            noted.fired.fetch_add(1, Ordering::Relaxed);
            fired.forward(interval);
        });
        let begun = timers.now();
        timer.start(interval).expect("not shut down");
        Cycle { timers, timer, seen, begun }
    }

    fn fired(&self) -> u64 {
        self.seen.fired.load(Ordering::Relaxed)
    }

    fn is_on_time(&self) -> bool {
        self.seen.early.load(Ordering::Relaxed) == 0
    }

    /// How long the driver has spun.
    fn spun(&self) -> Duration {
        self.timers.stats().bases[0].spun
    }

    fn wall(&self) -> Duration {
        self.timers.now() - self.begun
    }

    /// CPU time of the driver's thread; `None` if the system does not report it.
    fn cpu(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(self.seen.schedstat.get()?).ok()?;
        let ns = text.split(' ').next()?.parse().ok()?;
        Some(Duration::from_nanos(ns))
    }
}

/// Method: margins shorter and longer than the interval.
#[test]
fn no_timer_is_early_and_the_margin_is_kept() {
    for margin in [MS / 5, 3 * MS] {
        let cycle = Cycle::start(Wakeup::SpinBefore(margin), 2 * MS);
        wait_until("it has fired 50 times", || cycle.fired() >= 50);
        cycle.timer.cancel();
        // One more for a spin before an expiry that has not happened yet.
        let (spun, fired) = (cycle.spun(), cycle.fired() as u32 + 1);
        assert!(cycle.is_on_time(), "{margin:?}");
        assert!(spun > Duration::ZERO, "{margin:?}: it did not spin");
        assert!(spun <= margin.min(2 * MS) * fired, "{margin:?}: {spun:?}");
    }
}

/// Method: compared with one that only sleeps, for a second each, concurrently; both CPU times as
/// the kernel counts them.
#[test]
fn the_share_of_a_cpu_is_kept() {
    const SHARE: f64 = 0.05;
    let plain = Cycle::start(Wakeup::Sleep, MS);
    let auto = Cycle::start(Wakeup::Auto { cpu_share: SHARE }, MS);
    wait_until("a second has passed", || auto.wall() >= 1000 * MS);
    let (spun, cpu, plain_cpu, wall) = (auto.spun(), auto.cpu(), plain.cpu(), auto.wall());
    let allowed = wall.mul_f64(SHARE) + MS;
    println!("spun {spun:?} of {allowed:?}; CPU {cpu:?}, else {plain_cpu:?}");
    assert!(auto.is_on_time() && plain.is_on_time());
    assert_eq!(plain.spun(), Duration::ZERO);
    assert!(spun > Duration::ZERO && spun <= allowed, "{spun:?} of {allowed:?}");
    if let (Some(cpu), Some(plain_cpu)) = (cpu, plain_cpu) {
        // On a busy machine, even two wakeups of one kind differ in cost.
        assert!(cpu <= 2 * plain_cpu + allowed + 10 * MS, "{cpu:?}, else {plain_cpu:?}");
    }
}

/// Method: a margin longer than the test.
#[test]
fn a_spinning_driver_notices_an_earlier_deadline() {
    let hour = Duration::from_secs(3600);
    let cycle = Cycle::start(Wakeup::SpinBefore(2 * hour), hour);
    let begun = std::time::Instant::now();
    let (fired, counts) = shared_count();
    let sooner = cycle.timers.hrtimer(move |_| _ = counts.fetch_add(1, Ordering::Relaxed));
    for round in 1..=20 {
        sooner.start(MS).expect("not shut down");
        wait_until("the sooner one fires", || fired.load(Ordering::Relaxed) == round);
    }
    assert_eq!(cycle.fired(), 0);
    drop((sooner, cycle));
    assert!(begun.elapsed() < Duration::from_secs(60), "it ended");
}
