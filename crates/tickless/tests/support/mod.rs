//! What several test files share: numbers by chance, patience, and a place to put timers where
//! their callbacks find them.
#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod rig;
pub mod woken;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// No test waits longer than this for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// So many rounds, or a few under Miri, which is a thousand times slower and sees more.
pub fn rounds(count: u64) -> u64 {
    if cfg!(miri) { 3 } else { count }
}

/// Waits until `done` says so. Says what did not come about otherwise.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Numbers by chance: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
/// Generators", 2014).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Of any magnitude up to `bits` bits: a short timeout is as likely as a long one.
    pub fn of_any_size(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits) + 1;
        self.next() >> (64 - bits)
    }
}

/// The number from which a test draws, and how to draw the same again: always the same, so that one
/// change and not the hour decides whether tests pass. `TICKLESS_RUN` with any text in it chooses
/// another for every test, `TICKLESS_SEED` this very one.
pub fn seed(file: &str, test: &str) -> u64 {
    let run = std::env::var("TICKLESS_RUN").unwrap_or_default();
    let of_run = [file, test, &run].concat();
    let of_run = of_run.bytes().fold(0, |seed, byte| Rng::new(seed ^ u64::from(byte)).next());
    let given = std::env::var("TICKLESS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(of_run);
    let test =
        if file == "stress" { format!("stress {test}") } else { format!("all {file}::{test}") };
    println!("replay: TICKLESS_SEED={seed} cargo test -p tickless --test {test}");
    seed
}

/// A shared place for a value that comes later, or goes: mostly a timer that its own callback
/// or another one is to find.
pub struct Place<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        Place(Arc::clone(&self.0))
    }
}

impl<T> Place<T> {
    pub fn empty() -> Place<T> {
        Place(Arc::new(Mutex::new(None)))
    }

    pub fn put(&self, value: T) {
        *self.lock() = Some(value);
    }

    /// Takes the value out; the place is free again when the value is dropped.
    pub fn take(&self) -> Option<T> {
        self.lock().take()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_none()
    }

    pub fn with<R>(&self, use_it: impl FnOnce(&T) -> R) -> R {
        use_it(self.lock().as_ref().expect("something has been put here"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list that callbacks write and the test reads.
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Arc::clone(&self.0))
    }
}

impl<T> Log<T> {
    pub fn new() -> Log<T> {
        Log(Arc::new(Mutex::new(Vec::new())))
    }

    pub fn push(&self, entry: T) {
        self.lock().push(entry);
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// What has been written since the last time.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What each level of the wheel reaches, in ticks: the table of its documentation.
const REACH: [u64; 9] =
    [63, 497, 3_972, 31_776, 254_201, 2_033_602, 16_268_816, 130_150_524, 1_040_187_392];

/// When a timeout fires that is armed at `now`, in nanoseconds, if somebody looks all the time:
/// computed from the documentation, by division.
pub fn coarse_expiry(now: u64, deadline: u64, tick: u64) -> u64 {
    let due = deadline.div_ceil(tick);
    let mut clock = now / tick;
    if due <= clock {
        return now;
    }
    while due > clock {
        let distance = due - clock;
        let level = REACH.iter().position(|&reach| distance <= reach);
        if let Some(level) = level {
            return due.next_multiple_of(8u64.pow(level as u32)).saturating_mul(tick);
        }
        // Beyond the last level: looked at again when that has passed.
        clock = (clock + REACH[8]).next_multiple_of(8u64.pow(8));
    }
    clock.saturating_mul(tick)
}

/// The granule of a timeout's level, in nanoseconds: what it may be late by.
pub fn granule(now: u64, deadline: u64, tick: u64) -> u64 {
    let distance = deadline.div_ceil(tick).saturating_sub(now / tick);
    let level = REACH.iter().position(|&reach| distance <= reach).unwrap_or(8);
    8u64.pow(level as u32) * tick
}
