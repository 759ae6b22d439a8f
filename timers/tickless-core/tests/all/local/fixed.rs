//! Fixed timeouts: random histories against a list, classes that change while timers are pending.

use super::ms;
use crate::support::random::{Rng, with_seeds};
use std::time::Duration;
use tickless_core::local::{Class, Clock, FixedKey, FixedTimeouts, LocalError};
use tickless_core::time::Instant;

#[test]
fn invalid_arguments_are_refused() {
    let mut timeouts = FixedTimeouts::new(Clock::manual(Instant::ZERO));
    let class = timeouts.add_class(Duration::from_secs(1)).expect("room");
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(timeouts.scale(class, factor), Err(LocalError::BadFactor)));
    }
    let mut others = FixedTimeouts::<()>::new(Clock::manual(Instant::ZERO));
    assert_eq!(others.insert(class, ()), Err(LocalError::NoSuchClass));
    assert_eq!(others.scale(class, 1.0), Err(LocalError::NoSuchClass));
    let key = timeouts.insert(class, 7).expect("room");
    assert_eq!(timeouts.remove(key), Some(7));
    for bits in (0..64).map(|bit| key.to_bits() ^ 1 << bit).chain([key.to_bits(), 0, u64::MAX]) {
        let made_up = FixedKey::from_bits(bits);
        assert_eq!(timeouts.start(made_up), Err(LocalError::NoSuchTimer));
        assert_eq!(timeouts.cancel(made_up), Err(LocalError::NoSuchTimer));
        assert_eq!((timeouts.remove(made_up), timeouts.class_of(made_up)), (None, None));
    }
}

/// Goal: a factor of 1 changes nothing at any distance, and others round up (W1).
#[test]
fn durations_are_scaled_exactly() {
    let far = (1u64 << 60) + 127;
    let cases = [
        (far, 1.0, far),
        (far, 0.5, (1 << 59) + 64),
        (far, 3.0, 3 * far),
        (7, 1.5, 11),
        (10, 0.1, 2),
        (far, 1e300, u64::MAX),
        (far, 1e-300, 1),
        (far, f64::MIN_POSITIVE / 8.0, 1),
        (far, 0.0, 0),
        (0, 1e300, 0),
    ];
    for (after, factor, expected) in cases {
        // Started in the last nanosecond of a span, so that it fires as soon as it may.
        let start = (after / 32).max(1_000) - 1;
        let mut timeouts = FixedTimeouts::new(Clock::manual(Instant::from_nanos(start)));
        let class = timeouts.add_class(Duration::from_nanos(after)).expect("room");
        timeouts.scale(class, factor).expect("a factor");
        let key = timeouts.insert(class, ()).expect("room");
        timeouts.start(key).expect("inserted");
        if expected > 0 {
            let before = Instant::from_nanos(start.saturating_add(expected - 1).min(u64::MAX - 1));
            assert_eq!(timeouts.advance(before, |_, _| {}), 0, "{after} ns times {factor}");
        }
        let late = expected.max(after) / 16 + 2_000;
        let late = start.saturating_add(expected).saturating_add(late).min(u64::MAX - 1);
        let fires = usize::from(expected < u64::MAX);
        let fired = timeouts.advance(Instant::from_nanos(late), |_, _| {});
        assert_eq!(fired, fires, "{after} ns times {factor}");
    }
}

/// Goal: a class whose duration was lengthened is advanced as rarely as a new one.
#[test]
fn lengthened_classes_are_advanced_as_rarely_as_new_ones() {
    let long = Duration::from_secs(60);
    let advances_of = |created_with: Duration| {
        let mut timeouts = FixedTimeouts::new(Clock::manual(Instant::ZERO));
        let class = timeouts.add_class(created_with).expect("room");
        let starts = 1_000;
        for number in 0..starts {
            if number == starts / 2 {
                timeouts.set_after(class, long).expect("it is there");
            }
            let key = timeouts.insert(class, ()).expect("room");
            timeouts.start(key).expect("inserted");
            timeouts.advance(Instant::from_nanos(number), |_, _| {});
        }
        let (mut advances, mut fired, mut started) = (0, 0, 0);
        while timeouts.pending() > 0 || started < 1_000 {
            let next_start = if started < 1_000 { ms(10 * started + 1) } else { Instant::NEVER };
            let next_event = timeouts.next_event().unwrap_or(Instant::NEVER);
            if next_start <= next_event {
                fired += timeouts.advance(next_start, |_, _| {});
                let key = timeouts.insert(class, ()).expect("room");
                timeouts.start(key).expect("inserted");
                started += 1;
            } else {
                fired += timeouts.advance(next_event, |_, _| {});
                advances += 1;
                assert!(advances < 1_000, "it is advanced all the time");
            }
        }
        assert_eq!(fired, 2_000);
        advances
    };
    let (lengthened, new) = (advances_of(Duration::from_millis(1)), advances_of(long));
    assert!(lengthened <= new + 5, "{lengthened} advances, {new} of a new class");
}

/// The duration with which a class was created, and the current one.
struct TwinClass {
    class: Class,
    made: u64,
    after: u64,
    factor: f64,
}

impl TwinClass {
    fn scaled(&self) -> u64 {
        // Exact here: the durations of these histories have fewer than 53 bits.
        (self.after as f64 * self.factor).ceil() as u64
    }
}

struct History {
    random: Rng,
    classes: Vec<TwinClass>,
    /// By timer: its key, its class's number, and when it was started.
    timers: Vec<Option<(FixedKey, usize, Option<Instant>)>>,
}

const TIMERS: usize = 30;

/// Goal: any sequence of operations agrees with a list: timers fire once for each start, never
/// early, and late by at most a sixteenth of the class's duration (W1, W3, W6, K1).
#[test]
fn fixed_histories_match_a_list() {
    with_seeds(if cfg!(miri) { 2 } else { 1_500 }, |seed| {
        let mut timeouts = FixedTimeouts::new(Clock::manual(ms(5)));
        let (random, timers) = (Rng::new(seed), vec![None; TIMERS]);
        let mut history = History { random, classes: Vec::new(), timers };
        for _ in 0..if cfg!(miri) { 40 } else { 200 } {
            match history.random.below(5) {
                0 => history.advance(&mut timeouts),
                1 if history.random.one_in(8) => history.change_class(&mut timeouts),
                _ => history.operate(&mut timeouts),
            }
            let pending = history.timers.iter().flatten().filter(|timer| timer.2.is_some());
            assert_eq!(timeouts.pending(), pending.count());
            assert_eq!(timeouts.len(), history.timers.iter().flatten().count());
            let latest = history.latest().unwrap_or(Instant::NEVER).max(timeouts.now());
            assert!(timeouts.next_event().is_none_or(|next| next <= latest), "W3");
        }
    });
}

impl History {
    fn change_class(&mut self, timeouts: &mut FixedTimeouts<usize>) {
        let random = &mut self.random;
        if self.classes.len() < 3 {
            let made = random.pick(&[0, 1_000_000, 60_000_000_000, 3_600_000_000_000]);
            let class = timeouts.add_class(Duration::from_nanos(made)).expect("room");
            self.classes.push(TwinClass { class, made, after: made, factor: 1.0 });
            return;
        }
        let number = random.below(self.classes.len() as u64) as usize;
        let state = &mut self.classes[number];
        if random.one_in(3) {
            state.after = random.below(2 * state.made + 1_000);
            let after = Duration::from_nanos(state.after);
            timeouts.set_after(state.class, after).expect("it is there");
        } else {
            state.factor = random.pick(&[0.0, 0.1, 0.5, 1.0, 1.0, 3.0, 100.0]);
            timeouts.scale(state.class, state.factor).expect("a factor");
        }
    }

    fn operate(&mut self, timeouts: &mut FixedTimeouts<usize>) {
        let id = self.random.below(TIMERS as u64) as usize;
        let Some((key, class, started)) = self.timers[id] else {
            if self.classes.is_empty() {
                return self.change_class(timeouts);
            }
            let class = self.random.below(self.classes.len() as u64) as usize;
            let key = timeouts.insert(self.classes[class].class, id).expect("room");
            self.timers[id] = Some((key, class, None));
            return;
        };
        match self.random.below(8) {
            0 => {
                assert_eq!(timeouts.remove(key), Some(id));
                assert_eq!(timeouts.cancel(key), Err(LocalError::NoSuchTimer));
                self.timers[id] = None;
            }
            1..3 => {
                assert_eq!(timeouts.cancel(key), Ok(started.is_some()));
                self.timers[id] = Some((key, class, None));
            }
            _ => {
                assert_eq!(timeouts.start(key), Ok(()));
                self.timers[id] = Some((key, class, Some(timeouts.now())));
            }
        }
    }

    /// Returns when the first timer must have fired.
    fn latest(&self) -> Option<Instant> {
        let pending = self.timers.iter().flatten().filter_map(|&(_, class, started)| {
            let class = &self.classes[class];
            let late = Duration::from_nanos((class.made.max(class.scaled()) / 16).max(2_000));
            Some(started? + Duration::from_nanos(class.scaled()) + late)
        });
        pending.min()
    }

    fn advance(&mut self, timeouts: &mut FixedTimeouts<usize>) {
        let next = timeouts.next_event().map_or(Duration::MAX, |next| next - timeouts.now());
        let next = next.min(Duration::from_nanos(1 << 60));
        let (short, long) = (self.random.below(10_000_000), self.random.below(90_000_000_000));
        let to = timeouts.now()
            + Duration::from_nanos(self.random.pick(&[
                0,
                next.as_nanos() as u64,
                short,
                long,
                30 * long,
            ]));
        let budget = self.random.pick(&[usize::MAX, usize::MAX, 0, 1, 4]);
        let fired = timeouts.advance_at_most(to, budget, |timeouts, key| {
            let id = timeouts.get(key).copied().expect("it fired");
            let (held, class, started) = self.timers[id].expect("it is there");
            let started = started.expect("it was started");
            assert_eq!(held, key);
            assert!(
                started + Duration::from_nanos(self.classes[class].scaled()) <= timeouts.now(),
                "W1"
            );
            self.timers[id] = Some((key, class, None));
            for _ in 0..self.random.below(3) {
                self.operate(timeouts);
            }
            if self.random.one_in(20) {
                self.change_class(timeouts);
            }
        });
        assert!(fired <= budget);
        if budget == usize::MAX {
            assert!(self.latest().is_none_or(|latest| latest > timeouts.now()), "late");
        }
    }
}
