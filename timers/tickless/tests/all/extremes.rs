//! Deadlines of zero, in the past, far ahead and at the ends of 64 bits: in order, never lost.

use crate::support::{AnyTimer, Log};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::callback::{Cancel, Started};
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

const DAY: Duration = Duration::from_secs(86_400);
/// The last instant that the clock reaches.
const END: Instant = Instant::from_nanos(u64::MAX - 1);

#[test]
fn deadlines_in_the_past_fire_at_once_and_in_order() {
    let time = VirtualTime::new();
    let log = Log::new();
    let past = [7u64, 3, 3, 900_000_000, 0, 1_000_000_000, 3];
    let now = time.now();
    let mut expected: Vec<_> =
        past.iter().enumerate().map(|(at, &d)| (at, Instant::from_nanos(d), now)).collect();
    for kind in [0, 1] {
        let timer = |(at, &deadline): (usize, &u64)| {
            let log = log.clone();
            let callback = move |f: &mut tickless::Fired<'_>| log.push((at, f.deadline(), f.now()));
            let both = AnyTimer::both(time.timers(), callback);
            assert_eq!(both[kind].start_at(Instant::from_nanos(deadline)), Ok(Started::Idle));
            both
        };
        let _timers: Vec<_> = past.iter().enumerate().map(timer).collect();
        time.advance(Duration::ZERO);
        assert_eq!(log.take(), expected);
        expected.sort_by_key(|&(_, deadline, _)| deadline);
    }
    assert_eq!(time.now(), Instant::from_secs(1), "no time has passed");
}

#[test]
fn a_timer_for_never_does_not_fire() {
    let time = VirtualTime::new();
    let calls = Arc::new(AtomicU64::new(0));
    let counts = [(); 3].map(|()| Arc::clone(&calls));
    let [one, other, third] = counts.map(|count| move || _ = count.fetch_add(1, Ordering::Relaxed));
    let timeout = time.timers().timeout(move |_| one());
    let hrtimer = time.timers().hrtimer(move |_| other());
    let periodic = time.timers().periodic(move |_| third());
    timeout.start(Duration::MAX).unwrap();
    hrtimer.start(Duration::MAX).unwrap();
    periodic.start(Duration::MAX).unwrap();
    time.advance(DAY * 365);
    time.advance_to(Instant::NEVER);
    time.advance(Duration::MAX);
    assert_eq!((time.now(), time.next_event(), time.advance_to_next()), (END, None, false));
    assert_eq!(periodic.cancel(), Cancel::Pending);
    assert_eq!(timeout.start_at(Instant::NEVER), Ok(Started::Pending));
    assert_eq!(hrtimer.start_range(END, Instant::NEVER), Ok(Started::Pending));
    time.advance(Duration::ZERO);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "its window has begun: {END:?} has come");
    assert_eq!(hrtimer.start_with_slack(Duration::MAX, Duration::MAX), Ok(Started::Idle));
    assert!(timeout.is_pending() && hrtimer.is_pending() && !periodic.is_active());
    assert_eq!([timeout.cancel(), hrtimer.cancel()], [Cancel::Pending; 2]);
    assert_eq!(time.timers().stats().pending(), 0);
}

#[test]
fn a_driver_sleeps_without_a_deadline_for_never() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let (timeout, hrtimer) = (timers.timeout(|_| {}), timers.hrtimer(|_| {}));
    let periodic = timers.periodic(|_| {});
    for after in [Duration::MAX, Duration::from_nanos(u64::MAX), DAY * 106_751, DAY * 106_752] {
        timeout.start(after).unwrap();
        hrtimer.start(after).unwrap();
        hrtimer.start_with_slack(after, after).unwrap();
        periodic.start(after).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert!(timeout.is_pending() && hrtimer.is_pending() && periodic.is_active());
        assert_eq!(timeout.cancel(), Cancel::Pending);
        assert_eq!(hrtimer.cancel(), Cancel::Pending);
        assert_eq!(periodic.cancel(), Cancel::Pending);
    }
    assert_eq!(timers.stats().total().fired, 0);
}
