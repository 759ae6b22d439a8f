//! Phases of periodic timers: chosen once, applied to both ends of the window, and released; and
//! their cost in combination with slack.

use crate::support::{HOUR, Log, MS, shared_count};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tickless::periodic::{PeriodError, Phase};
use tickless::{Periodic, Timers, VirtualTime};

fn idle(timers: &Timers, phase: Phase) -> Periodic {
    timers.periodic(|_| {}).phase(phase)
}

#[test]
fn timers_of_all_bases_are_spread_together() {
    let timers = Timers::builder().bases(2).start().unwrap();
    let started: Vec<Periodic> = (0..8)
        .map(|_| {
            let timer = idle(&timers, Phase::Spread);
            std::thread::scope(|scope| {
                scope.spawn(|| timer.start(HOUR).unwrap());
            });
            timer
        })
        .collect();
    let mut places: Vec<Duration> =
        started.iter().map(|timer| timer.phase_offset().unwrap()).collect();
    places.sort_unstable();
    let (eighth, ns) = (HOUR / 8, Duration::from_nanos(1));
    assert!(places.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(eighth) <= ns), "{places:?}");
    assert_eq!((timers.phase_count(HOUR), timers.phase_gap(HOUR)), (8, Some(eighth)));
}

#[test]
fn phases_are_kept_and_released() {
    let time = VirtualTime::new();
    let timers = time.timers();
    let seated = |period| timers.phase_count(period);
    let timer = idle(timers, Phase::Spread);
    assert_eq!((timer.phase_offset(), seated(MS)), (None, 0));
    timer.start(MS).unwrap();
    let place = timer.phase_offset();
    timer.start(MS).unwrap();
    assert_eq!((timer.phase_offset(), seated(MS)), (place, 1));
    timer.start(MS * 2).unwrap();
    assert_eq!((seated(MS), seated(MS * 2)), (0, 1));
    timer.start_at(time.now(), MS * 2).unwrap();
    assert_eq!((timer.phase_offset(), seated(MS * 2)), (None, 0));
    timer.start(MS).unwrap();
    timer.cancel();
    assert_eq!((timer.phase_offset(), seated(MS)), (None, 0));
    timer.start(MS).unwrap();
    timer.cancel_sync().unwrap();
    assert_eq!((timer.phase_offset(), seated(MS)), (None, 0));
    timer.start(MS).unwrap();
    drop(timer);
    assert_eq!(seated(MS), 0);
    let ends = timers.periodic(|p| p.stop()).phase(Phase::Spread);
    ends.start(MS).unwrap();
    time.advance(MS * 3);
    assert!(!ends.is_active());
    assert_eq!(seated(MS), 1);
}

#[test]
fn absurd_periods_and_phases_are_refused() {
    let time = VirtualTime::new();
    let (fired, counted) = shared_count();
    let timer = time.timers().periodic(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
    let timer = timer.phase(Phase::Fixed(Duration::from_millis(7)));
    timer.start(MS * 10).unwrap();
    let place = timer.phase_offset();
    assert_eq!(place, Some(Duration::from_millis(7)));
    assert_eq!(timer.start(Duration::ZERO), Err(PeriodError::Zero));
    let beyond = PeriodError::PhaseBeyondPeriod {
        phase: Duration::from_millis(7),
        period: Duration::from_millis(5),
    };
    assert_eq!(timer.start(MS * 5), Err(beyond));
    let too_long = PeriodError::TooLong(Duration::from_nanos(u64::MAX));
    assert_eq!(timer.start(Duration::MAX), Err(too_long));
    time.advance(MS * 100);
    assert_eq!((timer.phase_offset(), fired.load(Ordering::Relaxed)), (place, 10));
    assert!(beyond.to_string().contains("not below its period"));
}

/// The total cost of a number of equal timers.
struct Cost {
    wakeups_per_s: u64,
    at_once_max: usize,
    /// Expiries less than 5 ms after another one, in percent: their work collides.
    collide_percent: u64,
    late_mean: Duration,
}

const PERIOD: Duration = Duration::from_millis(100);

fn cost(count: u64, policy: Phase, slack: Duration) -> Cost {
    let time = VirtualTime::new();
    let log = Log::new();
    let start = |_| {
        let written = log.clone();
        let timer = time.timers().periodic(move |p| written.push((p.now(), p.late_by())));
        let timer = timer.phase(policy).slack(slack);
        timer.start(PERIOD).unwrap();
        timer
    };
    let timers: Vec<Periodic> = (0..count).map(start).collect();
    // A whole number of periods, starting when all of them run steadily.
    time.advance(PERIOD * 3);
    let before = time.timers().stats().bases[0].device.events;
    log.take();
    time.advance(PERIOD * 100);
    let wakeups = time.timers().stats().bases[0].device.events - before;
    let fired = log.take();
    let mut at_once_max = 0;
    let mut collide = 0;
    let mut here = 0;
    for (n, &(at, _)) in fired.iter().enumerate() {
        let before = n.checked_sub(1).map(|last| fired[last].0);
        here = if before == Some(at) { here + 1 } else { 1 };
        at_once_max = at_once_max.max(here);
        collide += u64::from(before.is_some_and(|before| at - before < MS * 5));
    }
    let late: Duration = fired.iter().map(|fired| fired.1).sum();
    drop(timers);
    let count = fired.len() as u64;
    Cost {
        wakeups_per_s: wakeups / 10,
        at_once_max,
        collide_percent: (collide * 100 + count / 2) / count,
        late_mean: late / count as u32,
    }
}

/// Goal: P4 (spread phases): the wakeups and collisions of each combination of phase and slack are
/// those in `docs/book/src/phases.md`, which quotes this table.
#[test]
fn phase_and_slack_cost_as_documented() {
    let mut table = String::new();
    for slack in [0, 1, 5, 12, 25, 100] {
        for (name, policy) in
            [("aligned", Phase::Aligned), ("spread", Phase::Spread), ("random", Phase::Random(1))]
        {
            let Cost { wakeups_per_s, at_once_max, collide_percent, late_mean } =
                cost(16, policy, MS * slack);
            let late = late_mean.as_micros() as f64 / 1e3;
            table += &format!(
                "| {slack} ms | {name} | {wakeups_per_s} | {at_once_max} | {collide_percent} % \
                 | {late:.1} ms |\n"
            );
        }
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/phases.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/book/src/phases.md has another table than:\n{table}");
}
