//! W1 (never early): no timer fires early on any clock. On virtual time, also how late a timer may
//! be, to the nanosecond.

use crate::support::{Log, Rng, coarse_expiry, granule, seed, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::time::{Instant, Tick};
use tickless::{Builder, Timers, VirtualTime};

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
        let (due, begun) = (timers.now() + least, std::time::Instant::now());
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

/// Method: deadlines of every magnitude, armed and rearmed at any time, with four ticks, compared
/// with a computation from the table.
#[test]
fn timeouts_are_late_by_less_than_a_granule() {
    let mut rng = Rng::new(seed("never_early", "timeouts_are_late_by_less_than_a_granule"));
    for tick in [1_000, 999_983, 1_000_000, 10_000_000u64] {
        let tick_of_builder = Tick::new(Duration::from_nanos(tick)).unwrap();
        let builder = Timers::builder().bases(1).tick(tick_of_builder).coarse_like_real();
        let time = VirtualTime::with_builder(builder, Instant::from_nanos(rng.of_any_size(50)));
        let log = Log::new();
        for _ in 0..200 {
            let mut armed = Vec::new();
            for at in 0..25usize {
                time.advance(Duration::from_nanos(rng.of_any_size(22)));
                let log = log.clone();
                let timer = time.timers().timeout(move |f| log.push((at, f.deadline(), f.now())));
                let after = Duration::from_nanos(rng.of_any_size(53));
                if rng.below(4) == 0 {
                    timer.start(Duration::from_nanos(rng.of_any_size(53))).unwrap();
                }
                timer.start(after).unwrap();
                let now = time.now().as_nanos();
                armed.push((timer, now, now + after.as_nanos() as u64));
            }
            while armed.iter().any(|(timer, ..)| timer.is_pending()) {
                assert!(time.advance_to_next());
            }
            // Rearmed timers need no other computation: none fired between the armings, because the
            // clock did not advance.
            let fired = log.take();
            assert_eq!(fired.len(), armed.len());
            for (at, deadline, now) in fired {
                let (_, armed_at, due) = armed[at];
                assert_eq!(deadline, Instant::from_nanos(due));
                assert!(now >= deadline, "early: {now:?}, due {deadline:?}");
                let expected = coarse_expiry(armed_at, due, tick);
                assert_eq!(
                    now,
                    Instant::from_nanos(expected),
                    "armed at {armed_at} for {due}, tick {tick}"
                );
                assert!(
                    now.as_nanos() - due < granule(armed_at, due, tick),
                    "{now:?}, due {deadline:?}"
                );
            }
        }
    }
}

#[test]
fn hrtimers_fire_in_their_window() {
    let mut rng = Rng::new(seed("never_early", "hrtimers_fire_in_their_window"));
    let time = VirtualTime::new();
    let log = Log::new();
    let (mut armed, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..5000 {
        let log = log.clone();
        let timer =
            time.timers().hrtimer(move |f| log.push((f.deadline(), f.hard_deadline(), f.now())));
        let soft = time.now() + Duration::from_nanos(rng.of_any_size(30));
        let slack = if rng.below(3) == 0 { 0 } else { rng.of_any_size(26) };
        let hard = soft + Duration::from_nanos(slack);
        timer.start_range(soft, hard).unwrap();
        armed.push(timer);
        ends.push(hard);
    }
    time.advance(Duration::from_secs(10));
    let fired = log.take();
    assert_eq!(fired.len(), armed.len());
    let mut wakeups = 0;
    let mut last = Instant::ZERO;
    for (soft, hard, now) in fired {
        assert!(soft <= now && now <= hard, "{now:?} is not in {soft:?} to {hard:?}");
        assert!(ends.contains(&now), "there was no reason to wake at {now:?}");
        wakeups += u64::from(now != last);
        last = now;
    }
    assert!(wakeups < 4500, "{wakeups} wakeups for 5000 timers: windows save none");
}
