//! The host's monotonic clock: the time-stamp counter where the kernel trusts it.
//!
//! The kernel reads the TSC, scales it and disciplines the result; `CLOCK_MONOTONIC` through
//! the vDSO costs about 27 ns here against 11 for the counter. This clock follows
//! `CLOCK_MONOTONIC` by a straight line from one counter reading to the next, and the line is
//! drawn anew (continuously, never backwards) whenever a driver has compared the two. So it
//! neither drifts for the life of the process after one calibration at its start (a peer's
//! users found 83 ppm), nor pays for a system clock on every read.
//!
//! It runs at the system's speed within some parts in a million, most of the time; after a
//! calibration that was disturbed, or a suspend, within some hundred for a while. A deadline
//! that is exact on this clock may so be a fraction of a microsecond early by the system's. And
//! what the counter counts over a suspend is time on this clock. Who minds asks for the
//! system's clock itself ([`system_clock`](crate::Builder::system_clock)).
//!
//! Where the kernel does not trust the counter (current clock source not `tsc`), or there is
//! none, every read asks `CLOCK_MONOTONIC`.

use super::counter;
use super::discipline::{Course, Discipline, EVERY, Moment};
use super::line::Line;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use tickless_core::time::Ns;

/// Where the time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockSource {
    /// The CPU's time-stamp counter, disciplined by `CLOCK_MONOTONIC`.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    ClockGettime,
    /// The program's own hand: virtual time.
    Manual,
}

/// A monotonic clock in nanoseconds. Reading it takes no lock and no system call.
#[derive(Debug)]
pub struct HostClock {
    source: ClockSource,
    line: Line,
    /// Held by who compares the clocks; nobody waits for it.
    discipline: Mutex<Discipline>,
    manual: AtomicU64,
}

/// The first measurement of the rate takes this long.
const CALIBRATION: Ns = Ns::from_ms(1);
/// How near to each other two readings of the counter must be for what was read in between to
/// belong to them, in cycles: about a microsecond, which no preemption is as short as.
const CLOSE: u64 = 3000;
/// How often that is tried before the nearest is taken.
const TRIES: u32 = 30;

impl HostClock {
    /// The best clock that this machine has. Takes a millisecond for the first calibration.
    pub fn new() -> HostClock {
        if !counter::is_trusted() {
            return HostClock::system();
        }
        let from = compare();
        let mut to = compare();
        while to.system.since(from.system) < CALIBRATION {
            to = compare();
        }
        HostClock::with(ClockSource::Tsc, Discipline::new(from, to), to)
    }

    /// `CLOCK_MONOTONIC` itself.
    pub fn system() -> HostClock {
        HostClock::without_counter(ClockSource::ClockGettime)
    }

    /// A clock that stands still until it is told otherwise.
    pub fn manual(now: Ns) -> HostClock {
        let clock = HostClock::without_counter(ClockSource::Manual);
        clock.manual.store(now.0, Ordering::Relaxed);
        clock
    }

    fn without_counter(source: ClockSource) -> HostClock {
        let never = Moment { counter: 0, system: Ns::ZERO, doubt: 0 };
        HostClock::with(source, Discipline::new(never, never), never)
    }

    fn with(source: ClockSource, discipline: Discipline, now: Moment) -> HostClock {
        let line = Line::new(now.counter, now.system, discipline.mult());
        HostClock { source, line, discipline: Mutex::new(discipline), manual: AtomicU64::new(0) }
    }

    /// Where the time comes from.
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// The present. About 11 ns with a TSC, most of it the instruction itself.
    #[inline]
    pub fn now(&self) -> Ns {
        match self.source {
            ClockSource::Tsc => self.line.at(counter::read()),
            ClockSource::ClockGettime => system_now(),
            // Acquire: who sees the new time sees what was done before it was set.
            ClockSource::Manual => Ns(self.manual.load(Ordering::Acquire)),
        }
    }

    /// Sets a manual clock. Ignored when that would turn it back (D5).
    pub fn set_manual(&self, now: Ns) {
        self.manual.fetch_max(now.0, Ordering::AcqRel);
    }

    /// This clock's `deadline` on `CLOCK_MONOTONIC`, for the kernel. Compares the two clocks
    /// by the way and corrects this one when that has not been done for a while.
    pub fn to_system(&self, deadline: Ns) -> Ns {
        if self.source != ClockSource::Tsc || deadline == Ns::NEVER {
            return deadline;
        }
        let now = compare();
        if self.line.is_older_than(EVERY, now.counter) {
            self.correct(now);
        }
        now.system.after(deadline.since(self.line.at(now.counter)))
    }

    fn correct(&self, now: Moment) {
        let mut discipline = match self.discipline.try_lock() {
            Ok(discipline) => discipline,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else is at it.
            Err(TryLockError::WouldBlock) => return,
        };
        let Course { mult, at_least } = discipline.compare(now, self.line.at(now.counter));
        // The joint is where the counter stands when nobody can read the line any more: every
        // reading by the old line came from a lower count and every later one starts from
        // there, so time does not go back however long ago the comparison was (C8).
        self.line.redraw(counter::read, at_least, mult);
    }
}

impl Default for HostClock {
    fn default() -> Self {
        HostClock::new()
    }
}

/// The system's clock, and a counter reading that belongs to it: the closest of a few, and of
/// some more if none was close, since a preemption in between would count as an error.
fn compare() -> Moment {
    let mut best = Moment { counter: 0, system: Ns::ZERO, doubt: u64::MAX };
    for tries in 0..TRIES {
        let before = counter::read();
        let system = system_now();
        let took = counter::read().saturating_sub(before);
        if took / 2 < best.doubt {
            best = Moment { counter: before + took / 2, system, doubt: took / 2 };
        }
        if tries >= 2 && best.doubt <= CLOSE / 2 {
            break;
        }
    }
    best
}

/// `CLOCK_MONOTONIC`, through the vDSO.
pub fn system_now() -> Ns {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the clock stays with `CLOCK_MONOTONIC`, whatever the first calibration was worth.
    #[test]
    fn follows_the_system() {
        let clock = HostClock::new();
        let until = system_now().after(Ns::from_ms(if cfg!(miri) { 1 } else { 400 }));
        while system_now() < until {
            clock.to_system(clock.now());
        }
        let (ours, system) = (clock.now(), system_now());
        let apart = ours.since(system).0.max(system.since(ours).0);
        assert!(apart < 200_000, "{apart} ns apart ({:?})", clock.source());
    }

    /// Goal: C8 for one thread, across replacements of the line.
    #[test]
    fn never_goes_back() {
        let clock = HostClock::new();
        let mut last = Ns::ZERO;
        for round in 0..if cfg!(miri) { 100 } else { 2_000_000 } {
            let now = clock.now();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
            if round % 1000 == 0 && clock.source() == ClockSource::Tsc {
                clock.correct(compare());
            }
        }
    }

    #[test]
    fn manual_time_is_not_turned_back() {
        let clock = HostClock::manual(Ns(5));
        clock.set_manual(Ns(9));
        clock.set_manual(Ns(7));
        assert_eq!(clock.now(), Ns(9));
    }
}
