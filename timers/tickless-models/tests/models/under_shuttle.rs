//! The checker shuttle.

use crate::models::exploring::{Depth, primitives};
use crate::models::word::word;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::AtomicU64;
use std::env;
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::CpuId;

pub const NAME: &str = "shuttle";

primitives!(shuttle);

/// Explores a model in random schedules. Panics if the model does in one of them.
///
/// Half of the schedules switch threads at random. The other half run threads of random priority
/// and switch at a few random points, which finds bugs that need one thread to pause for long
/// (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic
/// Guarantees of Finding Bugs", 2010).
pub fn explore(depth: Depth, model: impl Fn() + Send + Sync + 'static) {
    let (model, half) = (Arc::new(model), depth.schedules.div_ceil(2));
    let mut config = shuttle::Config::new();
    config.silence_warnings = true;
    let again = Arc::clone(&model);
    let random = RandomScheduler::new_from_seed(seed(), half);
    shuttle::Runner::new(random, config.clone()).run(move || again());
    let few = PctScheduler::new_from_seed(seed(), 4, half);
    shuttle::Runner::new(few, config).run(move || model());
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn seed() -> u64 {
    let seed = env::var("TICKLESS_SEED").ok();
    seed.map_or(0x7169_636b, |text| text.parse().expect("TICKLESS_SEED is a decimal number"))
}

pub struct CheckedWord(AtomicU64);

impl CheckedWord {
    fn turn(&self) -> &AtomicU64 {
        &self.0
    }
}

word!(CheckedWord, |value| CheckedWord(AtomicU64::new(value)));
