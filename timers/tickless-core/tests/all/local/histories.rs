//! Rng histories of local timers and a naive twin. `ci/local.sh` runs 100 million operations.

use super::twin::Twin;
use crate::support::random::{Rng, given, with_seeds};
use crate::support::timers::Family;
use tickless_core::local::{Clock, Key, LocalError, LocalTimers};
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{Ns, Tick, Window};

struct History {
    twin: Twin,
    random: Rng,
    keys: Vec<Option<Key>>,
    removed: Vec<Key>,
    operations: u64,
}

const STEPS: u64 = 120;

/// Returns the number of histories, from `TICKLESS_HISTORIES` if that is set.
fn histories() -> u64 {
    given("TICKLESS_HISTORIES").unwrap_or(if cfg!(miri) { 3 } else { 4_000 })
}

/// Goal: any sequence of operations agrees with a sorted list (W1-W6, W9, K1).
#[test]
fn local_histories_match_a_list() {
    let operations = std::cell::Cell::new(0);
    with_seeds(histories(), |seed| {
        let mut random = Rng::new(seed);
        let tick = Ns(random.pick(&[1_000, 1_000_000, 1_000_000, 999_983, 1_000_000_000]));
        let push_out = random.pick(&[PushOut::Lazy, PushOut::Eager]);
        let start = Ns(random.pick(&[0, 1_000_000_000, 49 * 86_400_000_000_000, 1 << 62]));
        let count = random.pick(&[1, 3, 8, 8, 60, 300]);
        let of_tick = Tick::new(tick.to_duration()).expect("a tick");
        let mut timers = LocalTimers::with_push_out(Clock::manual(start.into()), of_tick, push_out);
        let twin = Twin::new(tick, push_out, count, start);
        let (keys, removed) = (vec![None; count], Vec::new());
        let mut history = History { twin, random, keys, removed, operations: 0 };
        if history.random.one_in(4) {
            history.arm_all(&mut timers);
        }
        for _ in 0..if cfg!(miri) { 30 } else { STEPS } {
            match history.random.below(4) {
                0 => history.advance(&mut timers),
                _ => history.operate(&mut timers),
            }
            history.check(&mut timers);
        }
        operations.set(operations.get() + history.operations);
    });
    println!("{} operations", operations.get());
}

impl History {
    /// Arms as many precise timers as there may be, so that an advance finds many of them due.
    fn arm_all(&mut self, timers: &mut LocalTimers<usize>) {
        for id in 0..self.keys.len() {
            let key = timers.insert_precise(id).expect("there is room");
            self.keys[id] = Some(key);
            self.twin.insert(id, Family::Precise);
            let window = self.any_window(timers.now().to_ns());
            assert_eq!(timers.start_range(key, window.soft.into(), window.hard.into()), Ok(()));
            self.twin.start(id, window);
        }
    }

    fn operate(&mut self, timers: &mut LocalTimers<usize>) {
        self.operations += 1;
        let id = self.random.below(self.keys.len() as u64) as usize;
        let Some(key) = self.keys[id] else {
            let family = self.random.pick(&[Family::Coarse, Family::Coarse, Family::Precise]);
            let key = match family {
                Family::Coarse => timers.insert(id),
                Family::Precise => timers.insert_precise(id),
            };
            self.keys[id] = Some(key.expect("there is room"));
            self.twin.insert(id, family);
            return;
        };
        match self.random.below(10) {
            0 => {
                assert_eq!(timers.remove(key), Some(id));
                self.twin.remove(id);
                self.keys[id] = None;
                self.removed.push(key);
            }
            1..4 => {
                assert_eq!(timers.cancel(key), Ok(self.twin.is_pending(id)));
                self.twin.cancel(id);
            }
            _ => {
                let window = self.any_window(timers.now().to_ns());
                assert_eq!(timers.start_range(key, window.soft.into(), window.hard.into()), Ok(()));
                self.twin.start(id, window);
            }
        }
    }

    fn any_window(&mut self, now: Ns) -> Window {
        let tick = self.twin.tick();
        let random = &mut self.random;
        let soft = match random.below(10) {
            0 => 0,
            1 => now.0.saturating_sub(random.below(5 * tick)),
            2 => now.0,
            3 => now.0 + random.below(5_000),
            4 => (now.0 / (4 * tick) + random.below(4)) * 4 * tick,
            5 => now.0 + random.below(4_000 * tick),
            6 => now.0 + boundary(random, tick),
            7 if random.one_in(4) => {
                random.pick(&[u64::MAX, u64::MAX - 1, (now.0 / 2).saturating_mul(3)])
            }
            _ => now.0 + random.below(40 * tick),
        };
        let slack = random.pick(&[0, 0, 1_000, 3 * tick]);
        Window::new(Ns(soft), Ns(soft.saturating_add(slack)))
    }

    fn advance(&mut self, timers: &mut LocalTimers<usize>) {
        self.operations += 1;
        let (tick, now) = (self.twin.tick(), timers.now().to_ns());
        let step = match self.random.below(6) {
            0 => 0,
            1 => self.random.below(10_000),
            2 => self.random.below(20 * tick),
            3 => boundary(&mut self.random, tick),
            4 => next_ns(timers.next_event()).saturating_sub(now.0),
            _ => self.random.below(3_000 * tick),
        };
        // The caller's clock sometimes goes back; that of the timers does not.
        let to = if self.random.one_in(9) { Ns::ZERO } else { now.after(Ns(step)) };
        // The end of the range is not reached.
        let to = if to.0 > 1 << 63 { now } else { to };
        let budget = self.random.pick(&[usize::MAX, usize::MAX, 0, 1, 3, 20]);
        self.twin.begin(to);
        if self.random.one_in(3) {
            self.advance_into(timers, to, budget);
            return;
        }
        let mut precise = 0;
        let fired = timers.advance_at_most(to.into(), budget, |timers, key| {
            let id = timers.get(key).copied();
            let family = id.and_then(|id| self.twin.timers[id]).map(|timer| timer.family);
            assert_eq!(self.twin.next(id), id, "at {to:?}");
            assert_eq!(timers.now().to_ns(), self.twin.now);
            precise += usize::from(family == Some(Family::Precise));
            for _ in 0..self.random.below(3) {
                self.operate(timers);
            }
        });
        self.ended(budget, fired, precise);
    }

    fn advance_into(&mut self, timers: &mut LocalTimers<usize>, to: Ns, budget: usize) {
        let mut keys = vec![Key::from_bits(7)];
        let fired = timers.advance_into_at_most(to.into(), budget, &mut keys);
        assert_eq!((keys.len(), keys[0]), (fired + 1, Key::from_bits(7)));
        let mut precise = 0;
        for &key in &keys[1..] {
            let id = timers.get(key).copied();
            let family = id.and_then(|id| self.twin.timers[id]).map(|timer| timer.family);
            assert_eq!(self.twin.next(id), id, "at {to:?}");
            precise += usize::from(family == Some(Family::Precise));
        }
        self.ended(budget, fired, precise);
    }

    fn ended(&mut self, budget: usize, fired: usize, precise: usize) {
        assert!(fired <= budget);
        if budget == usize::MAX {
            assert_eq!(self.twin.next(None), None, "due, and did not fire");
            assert_eq!(
                self.twin.is_late(),
                None,
                "W9 at {:?} tick {}: {:?}",
                self.twin.now,
                self.twin.tick(),
                self.twin.pending().collect::<Vec<_>>()
            );
        }
        self.twin.end(precise < budget);
    }

    fn check(&mut self, timers: &mut LocalTimers<usize>) {
        let pending = self.twin.pending().count();
        let present = self.keys.iter().flatten().count();
        assert_eq!((timers.pending(), timers.len()), (pending, present));
        let (early, late) = self.twin.next_event();
        let (next, now) = (Ns(next_ns(timers.next_event())), timers.now().to_ns());
        assert!(next <= late.max(now), "W3: late: {next:?} > {late:?}");
        assert!(pending > 0 || next == Ns::NEVER, "W3: an event without timers: {next:?}");
        let is_exact = early > now && self.twin.is_eager() && !self.twin.has_far();
        if is_exact && !self.twin.has_loose() {
            assert_eq!(next, early, "W3: exact");
        }
        for (id, key) in self.keys.iter().enumerate() {
            if let Some(key) = *key {
                assert_eq!(timers.get(key).copied(), Some(id));
                assert_eq!(timers.is_pending(key), self.twin.is_pending(id));
            }
        }
        self.try_made_up_keys(timers);
    }

    /// Tries keys that no timer has had, near those of removed timers and at random (K1).
    fn try_made_up_keys(&mut self, timers: &mut LocalTimers<usize>) {
        let near = self.removed.last().map_or(1, |key| key.to_bits());
        let turned = near ^ 1 << self.random.below(64);
        for bits in [near, turned, near.wrapping_add(1 << 32), self.random.next()] {
            let key = Key::from_bits(bits);
            if !self.keys.contains(&Some(key)) {
                let gone = LocalError::NoSuchTimer;
                assert_eq!(timers.get(key), None, "{bits:#x}");
                assert_eq!(timers.start_at(key, Ns(5).into()), Err(gone), "{bits:#x}");
                assert_eq!(timers.cancel(key), Err(gone), "{bits:#x}");
                assert_eq!(timers.remove(key), None, "{bits:#x}");
            }
        }
    }
}

/// Returns a distance near the reach of a level.
fn boundary(random: &mut Rng, tick: u64) -> u64 {
    let reach = random.pick(&crate::support::REACHES) * tick;
    reach.saturating_add(random.below(6 * tick)).saturating_sub(3 * tick)
}

/// Returns the nanoseconds of the next event; [`Ns::NEVER`] if there is none.
fn next_ns(next: Option<tickless_core::time::Instant>) -> u64 {
    next.map_or(Ns::NEVER.0, |next| next.as_nanos())
}
