//! Fires timers of equal expiry in a random order.
//!
//! On a machine with several CPUs, timers of equal expiry can be on several bases, which fire them
//! in no fixed order. To simulate that, each timer is armed on a random one of several bases, as if
//! another CPU had armed it, and the bases fire in a random order at each instant.

use super::VirtualTime;
use crate::platform::chance::Chance;
use crate::timers::Timers;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tickless_core::time::Instant;

/// The number of bases. Two timers get the same base, and so fire in order, once in 16 times.
const BASES: u16 = 16;

#[derive(Debug)]
pub(super) struct Shuffle {
    seed: u64,
    chance: Arc<Chance>,
    /// Whether the seed has been printed after a panic.
    is_printed: AtomicBool,
}

impl VirtualTime {
    /// Creates a virtual time that breaks ties at random: the seed decides the order in which
    /// timers of equal expiry fire. Timers that are pinned to one base keep their relative order.
    ///
    /// If a thread panics while it holds the returned value, the seed is printed to standard error,
    /// to reproduce the order. A seed reproduces a run only if a single thread uses the timers.
    pub fn shuffled_with_seed(seed: u64) -> VirtualTime {
        let builder = Timers::builder().bases(BASES);
        VirtualTime::start(builder, Instant::from_secs(1), Some(Shuffle::new(seed)))
    }

    /// Like [`shuffled_with_seed`](VirtualTime::shuffled_with_seed), with the seed in the
    /// environment variable `TICKLESS_SEED`, or with a new seed each time if that is not set.
    ///
    /// # Panics
    /// If the variable is set to something else than a decimal number of 64 bits.
    #[expect(clippy::panic, reason = "another order than the requested one would mislead")]
    pub fn shuffled() -> VirtualTime {
        let given = std::env::var("TICKLESS_SEED").ok().map(|text| {
            text.parse().unwrap_or_else(|_| panic!("TICKLESS_SEED is {text:?}, not a number"))
        });
        let by_time = || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            // Users type the seed, and 32 bits are easier to type than 64.
            Chance::new(now.map_or(1, |now| now.as_nanos() as u64)).draw() >> 32
        };
        VirtualTime::shuffled_with_seed(given.unwrap_or_else(by_time))
    }

    /// Returns the seed of the random order; `None` if this virtual time is not shuffled.
    pub fn seed(&self) -> Option<u64> {
        self.inner.shuffle.as_ref().map(|shuffle| shuffle.seed)
    }
}

impl Shuffle {
    fn new(seed: u64) -> Shuffle {
        Shuffle { seed, chance: Arc::new(Chance::new(seed)), is_printed: AtomicBool::new(false) }
    }

    /// Prints the seed, once, if the calling thread is panicking.
    #[expect(clippy::print_stderr, reason = "a failed test must print how to reproduce it")]
    pub(super) fn report_panic(&self) {
        if std::thread::panicking() && !self.is_printed.swap(true, Ordering::Relaxed) {
            eprintln!("ties were shuffled; to repeat: TICKLESS_SEED={}", self.seed);
        }
    }

    pub(super) fn chance(&self) -> Arc<Chance> {
        Arc::clone(&self.chance)
    }

    /// Puts the items into a random order.
    pub(super) fn shuffle<T>(&self, all: &mut [T]) {
        self.chance.shuffle(all);
    }
}
