//! Ties in a random order.
//!
//! Timers of one base and one deadline fire as they were armed, which programs may rely on. What
//! they may not rely on is that all timers are on one base: so under a shuffled time there are
//! several, each arming goes to a random one, as if it came from another CPU, and at each instant
//! the bases have their turns in another order.

use super::VirtualTime;
use crate::platform::chance::Chance;
use crate::timers::Timers;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tickless_core::time::Instant;

/// The bases of a shuffled time: of two timers that tie, one in so many pairs stays as armed.
const BASES: u16 = 16;

/// What shuffles.
#[derive(Debug)]
pub(super) struct Shuffle {
    seed: u64,
    chance: Arc<Chance>,
    /// Has it been printed how to repeat this?
    is_told: AtomicBool,
}

impl VirtualTime {
    /// Creates a virtual time that breaks ties at random: the order in which timers of equal expiry
    /// fire depends on the seed. Timers that are pinned to one base keep their order among each
    /// other.
    ///
    /// If a test panics while it holds this, a message on standard error says how to repeat it. A
    /// seed repeats a run only if its threads run in the same order, that is, with one thread.
    ///
    /// ```
    /// # use std::{sync::{Arc, Mutex}, time::Duration};
    /// use tickless::VirtualTime;
    ///
    /// let order = |seed| {
    ///     let (time, order) = (VirtualTime::shuffled(seed), Arc::new(Mutex::new(Vec::new())));
    ///     let timers: Vec<_> = (0..5).map(|nth| {
    ///         let order = Arc::clone(&order);
    ///         let timer = time.timers().hrtimer(move |_| order.lock().unwrap().push(nth));
    ///         timer.start(Duration::from_secs(1)).unwrap();
    ///         timer
    ///     }).collect();
    ///     time.advance(Duration::from_secs(1));
    ///     Arc::clone(&order).lock().unwrap().clone()
    /// };
    /// assert_eq!(order(1), order(1));
    /// assert!((2..20).any(|seed| order(seed) != order(1)));
    /// ```
    pub fn shuffled(seed: u64) -> VirtualTime {
        let builder = Timers::builder().bases(BASES);
        VirtualTime::start(builder, Instant::from_secs(1), Some(Shuffle::new(seed)))
    }

    /// Like [`shuffled`](VirtualTime::shuffled), with another seed each time, or with that of the
    /// environment variable `TICKLESS_SEED`.
    pub fn shuffled_anew() -> VirtualTime {
        let given = std::env::var("TICKLESS_SEED").ok().and_then(|seed| seed.parse().ok());
        let by_time = || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            // Short, since somebody may have to type it.
            Chance::new(now.map_or(1, |now| now.as_nanos() as u64)).draw() >> 32
        };
        VirtualTime::shuffled(given.unwrap_or_else(by_time))
    }

    /// The seed that shuffles ties, if they are shuffled.
    pub fn seed(&self) -> Option<u64> {
        self.world.shuffle.as_ref().map(|shuffle| shuffle.seed)
    }
}

impl Shuffle {
    fn new(seed: u64) -> Shuffle {
        Shuffle { seed, chance: Arc::new(Chance::new(seed)), is_told: AtomicBool::new(false) }
    }

    pub(super) fn chance(&self) -> Arc<Chance> {
        Arc::clone(&self.chance)
    }

    /// In a random order.
    pub(super) fn order<T>(&self, all: impl Iterator<Item = T>) -> Vec<T> {
        let mut all: Vec<T> = all.collect();
        self.chance.shuffle(&mut all);
        all
    }
}

/// A test that drops the time in a panic prints how to repeat it.
impl Drop for VirtualTime {
    #[expect(clippy::print_stderr, reason = "a test that fails must say how to repeat it")]
    fn drop(&mut self) {
        if let Some(shuffle) = &self.world.shuffle
            && std::thread::panicking()
            && !shuffle.is_told.swap(true, Ordering::Relaxed)
        {
            eprintln!("ties were shuffled; to repeat: TICKLESS_SEED={}", shuffle.seed);
        }
    }
}
