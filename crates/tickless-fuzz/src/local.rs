//! A fuzz target for all functions of `LocalTimers`. It calls them from outside and from callbacks,
//! with keys of live timers, of removed timers, and invented ones. A simple model of the timers
//! predicts every result.

use crate::bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use tickless_core::local::{Key, LocalTimers};
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{Instant, Tick};

/// Returns how much later than its deadline a coarse timer may fire: a seventh of `distance`, the
/// time from arming to the deadline (the timer wheel's granularity is at most 1/7.7 of it), and one
/// tick at either end of that time.
pub(crate) fn granule(distance: u64, tick: u64) -> u64 {
    (distance / 7).saturating_add(2 * tick)
}

/// The model of a timer.
struct Entry {
    value: u32,
    is_precise: bool,
    /// If the timer is armed: the time from which it may fire, and the time by which it must have
    /// fired.
    armed: Option<(u64, u64)>,
    /// The timer was armed by a callback of the current `advance`, so it may fire only in the next
    /// one.
    is_fresh: bool,
}

struct Model<'a> {
    bytes: Bytes<'a>,
    tick: u64,
    /// The timers that exist, by the bits of their keys.
    live: BTreeMap<u64, Entry>,
    /// All keys so far.
    keys: Vec<Key>,
    values: u32,
    /// The latest time to which the timers were advanced.
    now: u64,
    is_advancing: bool,
}

type Timers = LocalTimers<u32>;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let tick = [1_000, 1_000_000, 1_001, 1_000_000_000][bytes.below(4)];
    let push_out = [PushOut::Lazy, PushOut::Eager][bytes.below(2)];
    let now = bytes.number();
    let mut timers = Timers::with_push_out(
        Instant::from_nanos(now),
        Tick::new(Duration::from_nanos(tick)).unwrap_or_default(),
        push_out,
    );
    let (live, keys) = (BTreeMap::new(), Vec::new());
    let mut model = Model { bytes, tick, live, keys, values: 0, now, is_advancing: false };
    while let Some(choice) = model.bytes.next() {
        match choice % 12 {
            0..=2 => model.advance(&mut timers),
            _ => model.step(&mut timers, choice),
        }
        model.compare(&mut timers);
    }
}

impl Model<'_> {
    /// Returns the key of a live timer, of a removed timer, or an invented key.
    fn key(&mut self) -> Key {
        let how = self.bytes.byte();
        let known = self.keys.get(usize::from(how) % self.keys.len().max(1)).copied();
        match (how % 16, known) {
            (0, _) | (_, None) => Key::from_bits(self.bytes.number()),
            (1, Some(key)) => Key::from_bits(key.to_bits().wrapping_add(1 << 32)),
            (2, Some(key)) => Key::from_bits(key.to_bits().wrapping_sub(1 << 32)),
            (3, Some(key)) => Key::from_bits(key.to_bits() ^ (1 << (self.bytes.byte() % 64))),
            (_, Some(key)) => key,
        }
    }

    fn step(&mut self, timers: &mut Timers, choice: u8) {
        match choice % 12 {
            3 | 4 => self.insert(timers, choice),
            5 => self.remove(timers),
            6 => self.cancel(timers),
            7 => {
                let key = self.key();
                let value = self.live.get(&key.to_bits()).map(|entry| entry.value);
                assert_eq!(timers.get(key).copied(), value, "{key:?}");
            }
            8 => {
                let key = self.key();
                let is_armed = self.live.get(&key.to_bits()).is_some_and(|e| e.armed.is_some());
                assert_eq!(timers.is_pending(key), is_armed, "{key:?}");
            }
            _ => self.start(timers, choice),
        }
    }

    fn insert(&mut self, timers: &mut Timers, choice: u8) {
        let is_precise = choice & 16 != 0;
        self.values += 1;
        let inserted = if is_precise {
            timers.insert_precise(self.values)
        } else {
            timers.insert(self.values)
        };
        let key = inserted.expect("there is room");
        assert_ne!(key.to_bits(), 0);
        let entry = Entry { value: self.values, is_precise, armed: None, is_fresh: false };
        assert!(self.live.insert(key.to_bits(), entry).is_none(), "{key:?} was returned twice");
        self.keys.push(key);
    }

    fn remove(&mut self, timers: &mut Timers) {
        let key = self.key();
        let value = self.live.remove(&key.to_bits()).map(|entry| entry.value);
        assert_eq!(timers.remove(key), value, "{key:?}");
    }

    fn cancel(&mut self, timers: &mut Timers) {
        let key = self.key();
        let was_armed = self.live.get_mut(&key.to_bits()).map(|entry| entry.armed.take().is_some());
        assert_eq!(timers.cancel(key).ok(), was_armed, "{key:?}");
    }

    fn start(&mut self, timers: &mut Timers, choice: u8) {
        let (key, number) = (self.key(), self.bytes.number());
        let now = timers.now().as_nanos();
        let (soft, hard, started) = match choice % 12 {
            9 => {
                let after = Duration::from_nanos(number);
                let at = now.saturating_add(number);
                (at, at, timers.start(key, after))
            }
            10 => (number, number, timers.start_at(key, Instant::from_nanos(number))),
            _ => {
                // The range may be reversed.
                let hard = self.bytes.number();
                let (from, to) = (Instant::from_nanos(number), Instant::from_nanos(hard));
                (number, hard.max(number), timers.start_range(key, from, to))
            }
        };
        let (tick, is_advancing) = (self.tick, self.is_advancing);
        let Some(entry) = self.live.get_mut(&key.to_bits()) else {
            assert!(started.is_err(), "{key:?} was armed");
            return;
        };
        assert_eq!(started, Ok(()));
        let latest = if entry.is_precise {
            hard
        } else {
            soft.saturating_add(granule(soft.saturating_sub(now), tick))
        };
        entry.armed = Some((soft, latest));
        entry.is_fresh = is_advancing;
    }

    fn advance(&mut self, timers: &mut Timers) {
        let by = self.bytes.number();
        // The new time may also be equal to the current one, or earlier.
        let to = if by == 3 { self.now / 2 } else { self.now.saturating_add(by) };
        let budget = if by.is_multiple_of(5) { usize::from(self.bytes.byte()) } else { usize::MAX };
        self.now = self.now.max(to);
        self.is_advancing = true;
        for entry in self.live.values_mut() {
            entry.is_fresh = false;
        }
        let fired = timers
            .advance_at_most(Instant::from_nanos(to), budget, |timers, key| self.fire(timers, key));
        self.is_advancing = false;
        assert!(fired <= budget);
        // With a limited budget, due timers may remain although fewer timers than the budget have
        // fired, because the budget also pays for moving timers within the wheel. So check nothing.
        if budget != usize::MAX {
            return;
        }
        for (bits, entry) in &self.live {
            let Some((soft, latest)) = entry.armed else { continue };
            // A timer that a callback armed for a time in the past fires only in the next advance.
            let may_wait = entry.is_fresh && soft <= self.now;
            assert!(
                may_wait || latest > self.now || latest == u64::MAX,
                "{bits:#x}, armed for {soft} to {latest}, has not fired at {}",
                self.now
            );
        }
    }

    fn fire(&mut self, timers: &mut Timers, key: Key) {
        let entry = self.live.get_mut(&key.to_bits()).expect("only live timers fire");
        let (soft, _) = entry.armed.take().expect("only armed timers fire");
        assert!(soft <= self.now, "{key:?} is early: {soft}, at {}", self.now);
        assert!(!timers.is_pending(key));
        for _ in 0..self.bytes.byte() % 4 {
            let choice = self.bytes.byte();
            if choice % 12 > 2 {
                self.step(timers, choice);
            }
        }
    }

    fn compare(&mut self, timers: &mut Timers) {
        assert_eq!(timers.len(), self.live.len());
        let armed = self.live.values().filter_map(|entry| entry.armed);
        assert_eq!(timers.pending(), armed.clone().count());
        let latest = armed.map(|(_, latest)| latest).min().unwrap_or(u64::MAX);
        let next = timers.next_event().map_or(u64::MAX, Instant::as_nanos);
        assert!(
            next <= latest.max(self.now),
            "the next event is {next}, but a timer is due at {latest}"
        );
    }
}
