//! A clock that runs on the best of several counters, and changes to the next best if that counter
//! turns out to be bad.

use crate::platform::clock_error::OpenClockError;
use crate::platform::locked::locked;
use crate::platform::relax::relax;
use core::fmt;
use core::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless_core::clock::counter::Counter;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::sources::Fault;
pub use tickless_core::clock::timekeeper::Report;
use tickless_core::clock::timekeeper::{ClockReader, Timekeeper};
use tickless_core::clock::watchdog::Tolerance;
use tickless_core::time::{Instant, Ns};

type AnyCounter = Box<dyn Counter>;
type Keeper = Timekeeper<AtomicU64, AnyCounter, fn(u32)>;
type SharedReader = Arc<ClockReader<AtomicU64, AnyCounter, fn(u32)>>;

/// Monotonic time, boottime and realtime, computed from the best of several counters.
///
/// Reading takes no lock. The program must call [`maintain`](Clock::maintain) about every half
/// second, for instance from a [`Periodic`](crate::Periodic) timer. That call keeps narrow counters
/// from wrapping unnoticed, compares the counters with each other, and replaces a bad counter by
/// the next best.
///
/// ```
/// use tickless::clock::{Clock, Counter, SystemClock};
///
/// let raw = SystemClock::open(SystemClock::MONOTONIC_RAW)?;
/// let monotonic = SystemClock::open(SystemClock::MONOTONIC)?;
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
    /// Creates a clock that starts at zero and runs on the best-rated of these counters. A watchdog
    /// compares that counter with the next best, in [`maintain`](Clock::maintain).
    ///
    /// # Errors
    ///
    /// [`OpenClockError::NoCounter`] if there is no counter that can keep time.
    pub fn over(counters: Vec<AnyCounter>) -> Result<Clock, OpenClockError> {
        Clock::with_tolerance(counters, Tolerance::DEFAULT)
    }

    /// Like [`over`](Clock::over), with this tolerance for differences between counters.
    ///
    /// # Errors
    ///
    /// [`OpenClockError::NoCounter`] if there is no counter that can keep time.
    pub fn with_tolerance(
        counters: Vec<AnyCounter>,
        tolerance: Tolerance,
    ) -> Result<Clock, OpenClockError> {
        let relax: fn(u32) = relax;
        let keeper = Timekeeper::new(counters, relax).ok_or(OpenClockError::NoCounter)?;
        let keeper = keeper.with_tolerance(tolerance);
        Ok(Clock { reader: Arc::clone(keeper.reader()), keeper: Mutex::new(keeper) })
    }

    /// Returns the time since the clock was created, not counting suspends of the system.
    #[inline]
    pub fn monotonic(&self) -> Instant {
        self.reader.monotonic().into()
    }

    /// Returns the time since the clock was created, including the suspends that the program has
    /// reported by [`slept`](Clock::slept).
    #[inline]
    pub fn boottime(&self) -> Instant {
        self.reader.boottime().into()
    }

    /// Returns the wall-clock time: nanoseconds since the epoch that the program uses in
    /// [`set_realtime`](Clock::set_realtime).
    #[inline]
    pub fn realtime(&self) -> Instant {
        self.reader.realtime().into()
    }

    /// Returns how many times realtime was set or a suspend was reported.
    pub fn steps(&self) -> u64 {
        self.reader.steps()
    }

    /// Returns which counter the clock runs on: its index in the list given to
    /// [`over`](Clock::over).
    pub fn source(&self) -> usize {
        self.reader.source().index()
    }

    /// Returns the name of the counter that the clock runs on.
    pub fn source_name(&self) -> &str {
        self.name_of(self.source())
    }

    /// Returns the name of one of the counters; `"none"` if there is no such counter.
    pub fn name_of(&self, source: usize) -> &str {
        self.reader.counters().get(source).map_or("none", |counter| counter.name())
    }

    /// Updates the clock and checks its counters. Returns the counters that were found to be bad,
    /// and what was done about them. Reads each counter a few times, and takes a lock.
    pub fn maintain(&self) -> Vec<Report> {
        let mut keeper = locked(&self.keeper);
        keeper.tick();
        keeper.watch()
    }

    /// Returns how much time may pass between two calls of [`maintain`](Clock::maintain) before the
    /// clock loses time. Takes a lock.
    pub fn max_idle(&self) -> Duration {
        locked(&self.keeper).max_idle().to_duration()
    }

    /// Sets realtime. Monotonic time and boottime do not change. Takes a lock.
    pub fn set_realtime(&self, realtime: Instant) {
        locked(&self.keeper).set_realtime(realtime.into());
    }

    /// Reports a suspend of this duration, which has just ended. Monotonic time does not change;
    /// boottime and realtime advance by the duration. Takes a lock.
    pub fn slept(&self, duration: Duration) {
        let mut keeper = locked(&self.keeper);
        let suspended = keeper.suspend();
        keeper.resume(suspended, Ns::from_duration(duration));
    }

    /// Tells the clock not to use a counter any more, for a reason that the watchdog cannot detect.
    /// Takes a lock.
    pub fn give_up(&self, source: usize, fault: Fault) -> Report {
        match source_id(source) {
            Some(source) => locked(&self.keeper).blame(source, fault),
            None => Report::of(source, fault),
        }
    }

    /// Returns why a counter was given up; `None` if it was not. Takes a lock.
    pub fn fault(&self, source: usize) -> Option<Fault> {
        locked(&self.keeper).sources().fault(source_id(source)?)
    }
}

/// Converts a counter's index; `None` above 255.
fn source_id(index: usize) -> Option<SourceId> {
    u8::try_from(index).ok().map(SourceId)
}
