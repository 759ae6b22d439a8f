//! A time of one's own, over the best of several counters.

use crate::platform::relax::relax;
use core::fmt;
use core::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tickless_core::clock::counter::Counter;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::sources::Fault;
use tickless_core::clock::timekeeper::{ClockReader, NoCounter, Report, Timekeeper, WatchCounts};
use tickless_core::clock::watchdog::Tolerance;
use tickless_core::time::{Instant, Ns};

/// Any counter.
type Any = Box<dyn Counter>;
type Keeper = Timekeeper<AtomicU64, Any, fn(u32)>;
type SharedReader = Arc<ClockReader<AtomicU64, Any, fn(u32)>>;

/// Monotonic, boottime and realtime over the best of several counters.
///
/// Reading takes no lock. Somebody must call [`maintain`](Clock::maintain) every half a second
/// or so, from a `Periodic` timer for instance: it sees to it that narrow
/// counters do not wrap unseen, compares the counters with each other, and falls back to the
/// next best when one is bad.
///
/// ```
/// use tickless::clock::{Clock, ClockId, Counter, SystemClock};
///
/// let raw = SystemClock::open(ClockId::MONOTONIC_RAW)?;
/// let monotonic = SystemClock::open(ClockId::MONOTONIC)?;
/// let clock = Clock::over(vec![Box::new(monotonic), Box::new(raw)])?;
/// let before = clock.monotonic();
/// assert!(clock.maintain().is_empty(), "nothing to report");
/// assert!(clock.monotonic() >= before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Clock {
    reader: SharedReader,
    keeper: Mutex<Keeper>,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("source", &self.source_name()).finish_non_exhaustive()
    }
}

impl Clock {
    /// Keeps time by the best-rated of these counters, from zero. The next best is what the
    /// watchdog compares it with.
    ///
    /// # Errors
    ///
    /// [`NoCounter`] if there is no counter that can keep time.
    pub fn over(counters: Vec<Any>) -> Result<Clock, NoCounter> {
        Clock::with_tolerance(counters, Tolerance::DEFAULT)
    }

    /// The same, with a watchdog of other tolerance.
    ///
    /// # Errors
    ///
    /// [`NoCounter`] if there is no counter that can keep time.
    pub fn with_tolerance(counters: Vec<Any>, tolerance: Tolerance) -> Result<Clock, NoCounter> {
        let relax: fn(u32) = relax;
        let keeper = Timekeeper::new(counters, relax)?.with_tolerance(tolerance);
        Ok(Clock { reader: Arc::clone(keeper.reader()), keeper: Mutex::new(keeper) })
    }

    /// Time since the beginning.
    #[inline]
    pub fn monotonic(&self) -> Instant {
        self.reader.monotonic().into()
    }

    /// Time since the beginning, with the suspends that [`slept`](Clock::slept) was told of.
    #[inline]
    pub fn boottime(&self) -> Instant {
        self.reader.boottime().into()
    }

    /// The time of day, in nanoseconds since the epoch that was set.
    #[inline]
    pub fn realtime(&self) -> Instant {
        self.reader.realtime().into()
    }

    /// Goes up whenever realtime was set or the machine has slept.
    pub fn steps(&self) -> u64 {
        self.reader.steps()
    }

    /// Which counter is in use.
    pub fn source(&self) -> SourceId {
        self.reader.source()
    }

    /// Its name.
    pub fn source_name(&self) -> &str {
        let counters = self.reader.counters();
        counters.get(self.source().index()).map_or("none", |counter| counter.name())
    }

    /// The name of any of the counters.
    pub fn name_of(&self, source: SourceId) -> &str {
        self.reader.counters().get(source.index()).map_or("none", |counter| counter.name())
    }

    /// Keeps the clock right; returns which counters were found to be bad and what was done
    /// about it. Reads each counter a few times.
    pub fn maintain(&self) -> Vec<Report> {
        let mut keeper = self.keeper();
        keeper.tick();
        keeper.watch()
    }

    /// How long may pass between two calls of [`maintain`](Clock::maintain) without losing
    /// time.
    pub fn max_idle(&self) -> Duration {
        self.keeper().max_idle().to_duration()
    }

    /// Sets realtime. Monotonic time and boottime do not notice.
    pub fn set_realtime(&self, realtime: Instant) {
        self.keeper().set_realtime(realtime.into());
    }

    /// The machine, or whatever this clock is for, has just slept for so long. Monotonic time
    /// goes on from where it is now; boottime and realtime jump ahead.
    pub fn slept(&self, duration: Duration) {
        let mut keeper = self.keeper();
        let suspended = keeper.suspend();
        keeper.resume(suspended, Ns::from_duration(duration));
    }

    /// Gives a counter up for a reason that the watchdog cannot see.
    pub fn give_up(&self, source: SourceId, fault: Fault) -> Report {
        self.keeper().blame(source, fault)
    }

    /// What is held against a counter.
    pub fn fault(&self, source: SourceId) -> Option<Fault> {
        self.keeper().sources().fault(source)
    }

    /// What the watchdog has been through.
    pub fn watch_counts(&self) -> WatchCounts {
        self.keeper().watch_counts()
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
