//! W5 (64-bit time): timers on a clock that is about to reach the end of its range, armed for
//! "never" and for times before and after it.
//!
//! Goal: each arming decides alone when a timer fires; that the timer was armed for "never" before
//! changes nothing. The next event is in time for it, and it fires once, not early and within the
//! bound on its lateness, unless that is beyond the end.
//! Method: random armings of one timer, of every kind; then time advances from event to event.

use crate::support::TestPlatform;
use crate::support::random::{Rng, with_seeds};
use crate::support::scene::{HERE, Scene};
use crate::support::timers::{AnyTimer, Family};
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bases::{Bases, CoarseExpiry, IfPending, Options, Settings};
use tickless_core::local::{Clock, FixedTimeouts, LocalTimers};
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{Instant, Ns, Tick, Window};

/// The last time that a clock reaches.
const END: Ns = Ns(Ns::NEVER.0 - 1);
const TICKS: [u64; 4] = [1_000, 999_983, 1_000_000, 1_000_000_000];
/// Distances: of the clock from its end, and of deadlines from the clock.
const DISTANCES: [u64; 12] = [
    0,
    1,
    999,
    500_000,
    4_000_000,
    5_000_000,
    5_000_001,
    63_000_000,
    1_000_000_000,
    3_600_000_000_000,
    13 * 86_400_000_000_000,
    1 << 62,
];
const SEEDS: u64 = if cfg!(miri) { 20 } else { 1_500 };

fn distance(random: &mut Rng) -> Ns {
    let around = random.pick(&DISTANCES);
    Ns(if random.one_in(2) { around } else { random.below(around + 1) })
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    now: Ns,
    window: Window,
}

impl Armed {
    fn random(random: &mut Rng, now: Ns) -> Armed {
        let soft = if random.one_in(3) { Ns::NEVER } else { now.after(distance(random)) };
        let hard = if random.one_in(2) { soft } else { soft.after(distance(random)) };
        Armed { now, window: Window::new(soft, hard) }
    }

    fn latest(self, family: Family, tick: u64) -> Ns {
        let Window { soft, hard } = self.window;
        let distance = soft.since(self.now).0;
        match family {
            Family::Coarse => soft.after(Ns(distance / 256 * 33 + 33 + 2 * tick)),
            Family::Precise => hard,
        }
    }
}

/// Advances time from event to event, and checks when the timer fires. `next_event` returns the
/// next event, and `fire` returns how many timers fire at a time.
fn check_expiry<T>(
    timers: &mut T,
    armed: Armed,
    latest: Ns,
    next_event: impl Fn(&mut T) -> Ns,
    mut fire: impl FnMut(&mut T, Ns) -> usize,
) {
    let mut now = armed.now;
    for event in 0..10_000 {
        let mut next = next_event(timers).max(now);
        assert!(next <= latest.max(now), "{next:?} is after {latest:?}: {armed:?}");
        if next > END {
            return assert!(latest > END, "it never fires: {armed:?}");
        }
        if event == 20 {
            // A timer beyond the last level of the wheel causes many events.
            next = Ns(armed.window.soft.0 - 1).max(now);
        }
        now = next;
        let fired = fire(timers, now);
        if fired > 0 {
            assert!(fired == 1 && now >= armed.window.soft, "early at {now:?}: {armed:?}");
            assert_eq!(next_event(timers), Ns::NEVER, "{armed:?}");
            return;
        }
    }
    panic!("too many events: {armed:?}");
}

#[test]
fn timers_of_bases_are_shortened_from_never() {
    with_seeds(SEEDS, |seed| {
        let mut random = Rng::new(seed);
        let tick = random.pick(&TICKS);
        let (push_out, coarse) = random.pick(&[
            (PushOut::Lazy, CoarseExpiry::WithBucket),
            (PushOut::Eager, CoarseExpiry::WithBucket),
            (PushOut::Eager, CoarseExpiry::AtDeadline),
        ]);
        let settings = Settings {
            tick: Tick::new(Duration::from_nanos(tick)).expect("a tick"),
            push_out,
            coarse,
            ..Settings::default()
        };
        let now = Ns(END.0 - distance(&mut random).0);
        let bases = Bases::new(TestPlatform::new(1, now), 1, settings);
        let scene = Scene { bases: Arc::new(bases) };
        let family = random.pick(&Family::BOTH);
        let timer = scene.timer(family, 0);
        let mut armed = None;
        for _ in 0..=random.below(4) {
            let arming = Armed::random(&mut random, now);
            let reduces = random.one_in(3);
            let pending = if reduces { IfPending::Reduce } else { IfPending::Rearm };
            let options = Options { pending, ..Options::default() };
            timer.start(arming.window, now, options).expect("not shut down");
            let before = |other: &Armed| other.window.soft <= arming.window.soft;
            armed = armed.filter(|armed| reduces && before(armed)).or(Some(arming));
        }
        let armed = armed.expect("it has been armed");
        let latest = match coarse {
            CoarseExpiry::WithBucket => armed.latest(family, tick),
            CoarseExpiry::AtDeadline => armed.window.hard,
        };
        check_bases(&scene, &timer, coarse, armed, latest);
    });
}

fn check_bases(scene: &Scene, timer: &AnyTimer, coarse: CoarseExpiry, armed: Armed, latest: Ns) {
    assert!(timer.is_pending());
    let next_event = |scene: &mut &Scene| {
        let next = scene.bases.next_event(HERE);
        let device = scene.platform().armed(HERE);
        let now = scene.platform().time();
        assert!(
            device <= next.max(now),
            "the device fires at {device:?}, {next:?} is next: {armed:?}"
        );
        assert_eq!(scene.bases.check(HERE), Ok(()));
        match coarse {
            CoarseExpiry::WithBucket => next,
            CoarseExpiry::AtDeadline => scene.bases.exact_next_event(HERE),
        }
    };
    check_expiry(&mut &*scene, armed, latest, next_event, |scene, now| {
        scene.platform().set_time(now);
        scene.fire(HERE).len()
    });
}

#[test]
fn local_timers_are_shortened_from_never() {
    with_seeds(SEEDS, |seed| {
        let mut random = Rng::new(seed);
        let tick = random.pick(&TICKS);
        let of_tick = Tick::new(Duration::from_nanos(tick)).expect("a tick");
        let push_out = random.pick(&[PushOut::Lazy, PushOut::Eager]);
        let now = Ns(END.0 - distance(&mut random).0);
        let begin = if random.one_in(2) { now } else { Ns::ZERO };
        let mut timers = LocalTimers::with_push_out(Clock::manual(begin.into()), of_tick, push_out);
        let family = random.pick(&Family::BOTH);
        let key = match family {
            Family::Coarse => timers.insert(()),
            Family::Precise => timers.insert_precise(()),
        };
        let key = key.expect("room");
        if begin < now {
            timers.start_at(key, Instant::NEVER).expect("it is there");
            assert_eq!(timers.advance(now.into(), |_, _| ()), 0);
        }
        let mut armed = Armed::random(&mut random, now);
        for _ in 0..=random.below(4) {
            armed = Armed::random(&mut random, now);
            let Window { soft, hard } = armed.window;
            let started = match family {
                Family::Precise => timers.start_range(key, soft.into(), hard.into()),
                Family::Coarse if random.one_in(2) => {
                    timers.start(key, Duration::from_nanos(soft.since(now).0))
                }
                Family::Coarse => timers.start_at(key, soft.into()),
            };
            started.expect("it is there");
        }
        let next_event =
            |timers: &mut LocalTimers<()>| timers.next_event().map_or(Ns::NEVER, Instant::to_ns);
        let latest = armed.latest(family, tick);
        check_expiry(&mut timers, armed, latest, next_event, |timers, now| {
            timers.advance(now.into(), |_, _| ())
        });
    });
}

#[test]
fn classes_of_fixed_timeouts_are_shortened_from_never() {
    with_seeds(SEEDS, |seed| {
        let mut random = Rng::new(seed);
        let now = Ns(END.0 - distance(&mut random).0);
        let begin = if random.one_in(2) { now } else { Ns::ZERO };
        let mut timers = FixedTimeouts::new(Clock::manual(begin.into()));
        let made = distance(&mut random).to_duration();
        let made = if random.one_in(2) { Duration::MAX } else { made };
        let class = timers.add_class(made).expect("room");
        let key = timers.insert(class, ()).expect("room");
        timers.start(key).expect("it is there");
        if timers.advance(now.into(), |_, _| ()) == 0 {
            assert!(timers.is_pending(key));
        }
        let mut longest = Ns::from_duration(made);
        let mut after = longest;
        for _ in 0..=random.below(3) {
            after = if random.one_in(4) { Ns::NEVER } else { distance(&mut random) };
            longest = longest.max(after);
            timers.set_after(class, after.to_duration()).expect("it is there");
            timers.start(key).expect("it is there");
        }
        let soft = now.after(after);
        let armed = Armed { now, window: Window::new(soft, soft) };
        let latest = soft.after(Ns(longest.0 / 16 + 2_000_000));
        let next_event =
            |timers: &mut FixedTimeouts<()>| timers.next_event().map_or(Ns::NEVER, Instant::to_ns);
        check_expiry(&mut timers, armed, latest, next_event, |timers, now| {
            timers.advance(now.into(), |_, _| ())
        });
    });
}
