//! Random numbers that can be drawn again, and the runs that draw them.
//!
//! A run of histories takes its seeds from the text in `TICKLESS_RUN`, or from none: the same
//! commit tests the same histories. A history that fails prints the command that replays it.

use std::env;

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to, but not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Is one history replayed, so that it may say at length what happens?
pub fn is_replay() -> bool {
    env::var_os("TICKLESS_SEED").is_some()
}

/// Runs a test with `count` seeds, or with the one in `TICKLESS_SEED`.
pub fn with_seeds<F: Fn(u64)>(count: u64, test: F) {
    if let Ok(text) = env::var("TICKLESS_SEED") {
        let digits = text.trim_start_matches("0x");
        test(u64::from_str_radix(digits, 16).expect("TICKLESS_SEED is a hexadecimal number"));
        return;
    }
    let run = env::var("TICKLESS_RUN").unwrap_or_default();
    let run = run.bytes().fold(0, |seed, byte| Random::new(seed ^ u64::from(byte)).next());
    for number in 0..count {
        let seed = Random::new(run ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)).next();
        let replay = Replay { seed, test: std::any::type_name::<F>() };
        test(seed);
        std::mem::forget(replay);
    }
}

/// Dropped when a test fails: says how to see that again.
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
