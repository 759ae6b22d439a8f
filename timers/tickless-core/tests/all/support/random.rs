//! Random numbers from a seed, and tests that run with many seeds.
//!
//! The seeds come from the text in `TICKLESS_RUN`, so that a commit always tests the same
//! histories. A failing test prints the command that replays it.

use std::env;
use std::time::{Duration, Instant};

pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }
}

/// Returns whether one seed is replayed, so that the test may print what happens.
pub fn is_replay() -> bool {
    env::var_os("TICKLESS_SEED").is_some()
}

/// Runs a test with `count` seeds, or more for `TICKLESS_SECONDS`, or the one in `TICKLESS_SEED`.
pub fn with_seeds<F: Fn(u64)>(count: u64, test: F) {
    if let Ok(text) = env::var("TICKLESS_SEED") {
        let digits = text.trim_start_matches("0x");
        test(u64::from_str_radix(digits, 16).expect("TICKLESS_SEED is a hexadecimal number"));
        return;
    }
    let run = env::var("TICKLESS_RUN").unwrap_or_default();
    let run = run.bytes().fold(0, |seed, byte| Random::new(seed ^ u64::from(byte)).next());
    let seconds = env::var("TICKLESS_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    for number in (0..u64::MAX).take_while(|&number| number < count || Instant::now() < end) {
        let seed = Random::new(run ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)).next();
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
            "again: TICKLESS_SEED={seed:#x} cargo test -p {package} --test {binary} -- \
             --exact {test}"
        );
    }
}
