//! What random histories share, also those of the core: random numbers, the seed of a test, its
//! duration, and panics that a test intends.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::disallowed_methods, reason = "tests sleep")]

use std::time::{Duration, Instant};

/// The longest time that a test waits for an expected event.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `done` returns `true`. Panics with `what` if it does not in time.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Random numbers: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
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

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns a number of any magnitude up to `bits` bits: short timeouts are as likely as long.
    pub fn of_any_size(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits) + 1;
        self.next() >> (64 - bits)
    }
}

/// Returns the seed of a test. It is fixed, so only changes of the code decide whether tests pass.
/// `TICKLESS_RUN`, set to any text, chooses another seed for every test; `TICKLESS_SEED` sets it.
pub fn seed(file: &str, test: &str) -> u64 {
    let seed = given("TICKLESS_SEED").unwrap_or_else(|| mixed([file, test]));
    let package = env!("CARGO_PKG_NAME");
    println!("replay: TICKLESS_SEED={seed} cargo test -p {package} {test}");
    seed
}

/// Returns the decimal number in a variable of the environment, if that is set.
pub fn given(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}, not a number")))
}

/// Mixes the names of a test and `TICKLESS_RUN` to a seed.
fn mixed(names: [&str; 2]) -> u64 {
    let run = std::env::var("TICKLESS_RUN").unwrap_or_default();
    let bytes = names.into_iter().chain([run.as_str()]).flat_map(str::bytes);
    bytes.fold(0, |seed, byte| Rng::new(seed ^ u64::from(byte)).next())
}

/// Runs a test with `count` seeds, or more for `TICKLESS_SECONDS`, or the one in `TICKLESS_SEED`.
pub fn with_seeds<F: Fn(u64)>(count: u64, test: F) {
    if let Some(seed) = given("TICKLESS_SEED") {
        return test(seed);
    }
    let mut seeds = Rng::new(mixed(["", ""]));
    let end = end_after(Duration::ZERO);
    for _ in (0..u64::MAX).take_while(|&number| number < count || Instant::now() < end) {
        let seed = seeds.next();
        let replay = Replay { seed, test: std::any::type_name::<F>() };
        test(seed);
        std::mem::forget(replay);
    }
}

/// Dropped when a test fails: prints how to replay it.
struct Replay {
    seed: u64,
    /// The closure's name: `binary::test::{{closure}}`.
    test: &'static str,
}

impl Drop for Replay {
    fn drop(&mut self) {
        let (binary, test) = self.test.split_once("::").unwrap_or_default();
        let test = test.trim_end_matches("::{{closure}}");
        let (seed, package) = (self.seed, env!("CARGO_PKG_NAME"));
        eprintln!(
            "again: TICKLESS_SEED={seed} cargo test -p {package} --test {binary} -- --exact {test}"
        );
    }
}

/// Returns when a random history ends: after `TICKLESS_SECONDS`, or after the given time.
pub fn end_after(default: Duration) -> Instant {
    Instant::now() + given("TICKLESS_SECONDS").map_or(default, Duration::from_secs)
}

/// The payload of intended panics.
pub struct OnPurpose;

/// Suppresses the messages of intended panics.
pub fn hush() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<OnPurpose>() {
            loud(info);
        }
    }));
}
