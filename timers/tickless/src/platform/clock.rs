//! The monotonic clock that timers use on this machine.
//!
//! Its time is a linear function of the CPU's counter, called the *line*. A reading costs about 11
//! ns, and one of `CLOCK_MONOTONIC` through the vDSO about 27 ns. A line is valid for 10 ms of its
//! counter ([`SPAN`]). The first thread that reads the clock after that compares the counter with
//! `CLOCK_MONOTONIC`, and draws the next line.
//!
//! So this clock shows the time of `CLOCK_MONOTONIC`, to about a microsecond, and a deadline here
//! is one there. When the system was suspended and the counter went on, no thread sees the time of
//! the counter: a pending timer is not early, and a new one is not late.
//! `docs/dev/clock-events.md` has what else can happen to clocks. `Builder::system_clock` makes
//! timers read the system's clock each time.
//!
//! Without a counter that the kernel trusts, every reading is one of `CLOCK_MONOTONIC`. If the
//! kernel stops trusting the counter later, or the counter contradicts the system's clock
//! repeatedly, this clock changes to `CLOCK_MONOTONIC`; [`fallback`](HostClock::fallback) returns
//! the reason.

use crate::platform::clock_error::Fallback;
use crate::platform::comparison::compare;
use crate::platform::counter;
pub use crate::platform::counter::read as read_counter;
use crate::platform::fork::Process;
use crate::platform::manual_clock::ManualClock;
use crate::platform::relax::relax;
use crate::platform::runtime::Runtime;
use crate::platform::system_clock::{system_now, system_time};
use crate::platform::time_base::{Steps, TimeBase};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
#[cfg(doc)]
use tickless_core::clock::discipline::SPAN;
use tickless_core::clock::discipline::{Discipline, Moment};
use tickless_core::clock::line::Line;
use tickless_core::clock::segment::{Segment, SourceId};
use tickless_core::time::Ns;

/// Where the timers' clock gets its time from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClockSource {
    /// The CPU's time-stamp counter, disciplined by `CLOCK_MONOTONIC`.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    ClockGettime,
    /// The program, which moves virtual time itself.
    Manual,
}

/// Whose clock it is, in [`AcquireError::OtherClock`](crate::bandwidth::AcquireError::OtherClock).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClockKind {
    /// The system's monotonic clock.
    System,
    /// The clock of a tokio runtime, which the program can pause.
    Runtime,
    /// A [`VirtualTime`](crate::VirtualTime).
    Virtual,
}

impl core::fmt::Display for ClockKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ClockKind::System => "the system's clock",
            ClockKind::Runtime => "the clock of a tokio runtime",
            ClockKind::Virtual => "a virtual clock",
        })
    }
}

/// A monotonic clock in nanoseconds. Reading it takes no lock and makes no system call.
// The order of the fields saves an instruction for each reading. The first field has the address of
// the clock itself, which compilers compute again when they read that field. So a field that most
// readings do not need comes first.
#[repr(C)]
#[derive(Debug)]
pub struct HostClock {
    /// The clock that the program moves. Only a clock of [`Kind::Manual`] reads its time; clocks of
    /// every kind use its `steps`.
    manual: Arc<ManualClock>,
    kind: Kind,
    /// The asynchronous runtime whose clock is read, for [`Kind::Runtime`].
    runtime: Option<Arc<dyn Runtime>>,
    /// Converts a count to time. Its source is [`TSC`], or [`SYSTEM`] after the TSC was given up.
    line: Line<AtomicU64>,
    process: Process,
    /// Held by the thread that compares the counter with the system's clock. Other threads skip the
    /// comparison instead of waiting.
    discipline: Mutex<Discipline>,
    /// Why the counter is not used. Set at most once: at the start, or after a comparison.
    fallback: OnceLock<Fallback>,
    /// Whether there is a fallback that `take_new_fallback` has not returned yet.
    is_fallback_new: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Line,
    System,
    Manual,
    Runtime,
}

/// Where a line's time comes from: the counter, or `CLOCK_MONOTONIC`, in which case no count is in
/// the line's span.
const TSC: SourceId = SourceId(0);
const SYSTEM: SourceId = SourceId(1);

/// How long the first calibration spins. The worst of 300 on a busy virtual machine was 30 ppm off
/// (after 1 ms: 11 ppm): 0.3 us until the first correction, which comes after 10 ms.
const CALIBRATION: Ns = Ns::from_us(500);
/// If this many comparisons in a row do not fit the counter's known rate, the counter is given up.
/// After a suspend one does not fit.
const ODD_STEPS_MAX: u32 = 8;

impl HostClock {
    /// Calibrates the CPU's counter, or falls back to the system's clock if it is not trusted.
    pub fn new() -> HostClock {
        if let Err(fallback) = counter::trust() {
            let clock = HostClock::system();
            clock.set_fallback(fallback);
            return clock;
        }
        let from = compare();
        let mut to = compare();
        while to.system.since(from.system) < CALIBRATION {
            to = compare();
        }
        HostClock::with(Kind::Line, Discipline::new(from, to))
    }

    pub fn system() -> HostClock {
        HostClock::without_counter(Kind::System)
    }

    /// Returns the time on another clock, including the steps by which a test has moved that clock.
    pub fn now_on(&self, base: TimeBase) -> Ns {
        let unmoved = match (base, self.kind) {
            (TimeBase::Monotonic, _) => return self.now(),
            (_, Kind::Manual) => self.now(),
            (base, Kind::Runtime) if self.is_real() => return system_time(base),
            // All clocks advance together in a test that moves one.
            (_, Kind::Runtime) => self.now(),
            (base, _) => system_time(base),
        };
        self.steps().shown(base, unmoved)
    }

    pub fn steps(&self) -> &Steps {
        &self.manual.steps
    }

    pub fn manual(manual: Arc<ManualClock>) -> HostClock {
        HostClock { manual, ..HostClock::without_counter(Kind::Manual) }
    }

    #[cfg_attr(not(feature = "tokio-time"), expect(dead_code, reason = "tokio's runtimes only"))]
    pub fn of_runtime(runtime: Arc<dyn Runtime>) -> HostClock {
        let clock = HostClock::without_counter(Kind::Runtime);
        let now = system_now();
        #[cfg(linux_platform)]
        {
            let ahead_ns = system_time(TimeBase::Boottime).since(now).0;
            clock.steps().step(TimeBase::Boottime, i128::from(ahead_ns));
        }
        clock.steps().set_realtime(system_time(TimeBase::Realtime), now);
        HostClock { runtime: Some(runtime), ..clock }
    }

    /// Returns the asynchronous runtime that drives the timers on this clock, if there is one.
    #[inline]
    pub fn runtime(&self) -> Option<&dyn Runtime> {
        if cfg!(feature = "tokio-time") { self.runtime.as_deref() } else { None }
    }

    fn without_counter(kind: Kind) -> HostClock {
        let never = Moment { counter: 0, system: Ns::ZERO, doubt: 0 };
        HostClock::with(kind, Discipline::new(never, never))
    }

    fn with(kind: Kind, discipline: Discipline) -> HostClock {
        HostClock {
            kind,
            line: Line::new(discipline.first(TSC)),
            process: Process::this(),
            manual: Arc::default(),
            discipline: Mutex::new(discipline),
            fallback: OnceLock::new(),
            is_fallback_new: AtomicBool::new(false),
            runtime: None,
        }
    }

    pub fn source(&self) -> ClockSource {
        match self.kind {
            Kind::Manual => ClockSource::Manual,
            Kind::System | Kind::Runtime => ClockSource::ClockGettime,
            // While another thread corrects the clock, the line cannot be read. Assume the counter
            // then, which is the likely source.
            Kind::Line => match self.line.try_segment().map(|segment| segment.source) {
                Some(SYSTEM) => ClockSource::ClockGettime,
                _ => ClockSource::Tsc,
            },
        }
    }

    /// Returns whether the clock shows the system's monotonic time, which the program cannot move.
    pub fn is_real(&self) -> bool {
        match self.kind {
            Kind::Line | Kind::System => true,
            Kind::Manual => false,
            Kind::Runtime => self.runtime.as_ref().is_some_and(|runtime| !runtime.is_virtual()),
        }
    }

    /// Returns whether an instant of this clock means the same time on `other`.
    #[inline]
    pub fn agrees_with(&self, other: &HostClock) -> bool {
        core::ptr::eq(self, other)
            || (self.kind == Kind::Manual && Arc::ptr_eq(&self.manual, &other.manual))
            || (self.is_real() && other.is_real())
    }

    pub fn fallback(&self) -> Option<Fallback> {
        self.fallback.get().copied()
    }

    /// Returns the fallback to the first caller after it was set, and `None` to all other callers.
    /// The clock itself cannot report a fallback, because some callers of `now` hold a lock.
    #[inline]
    pub fn take_new_fallback(&self) -> Option<Fallback> {
        if !self.is_fallback_new.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire: pairs with the Release in `set_fallback`, so that the reason is visible.
        self.is_fallback_new.swap(false, Ordering::Acquire).then(|| self.fallback()).flatten()
    }

    fn set_fallback(&self, fallback: Fallback) {
        self.fallback.get_or_init(|| fallback);
        // Release: pairs with the Acquire in `take_new_fallback`.
        self.is_fallback_new.store(true, Ordering::Release);
    }

    /// Returns the current time. Costs about 11 ns with a TSC, most of it for the instruction that
    /// reads the TSC. Once in 10 ms, compares the TSC with the system's clock, or waits while
    /// another thread does.
    #[inline]
    pub fn now(&self) -> Ns {
        self.try_now().unwrap_or_else(|| self.now_slow())
    }

    /// Returns the current time if it comes from the counter, and no comparison is due. Short
    /// enough to be inlined: it calls no other function and needs no stack.
    #[inline]
    pub fn try_now(&self) -> Option<Ns> {
        if self.kind == Kind::Line { self.line.try_now(counter::read) } else { None }
    }

    /// Does the same with a count that the caller has just [read](read_counter).
    #[inline]
    pub fn try_time_of(&self, count: u64) -> Option<Ns> {
        if self.kind == Kind::Line { self.line.try_now(|| count) } else { None }
    }

    /// Reads a clock that uses no counter, or compares the counter with the system's clock.
    #[inline(never)]
    fn now_slow(&self) -> Ns {
        match self.kind {
            Kind::Line => self.compared(),
            Kind::System => system_now(),
            Kind::Manual => self.manual.now(),
            Kind::Runtime => self.runtime.as_ref().map_or(Ns::ZERO, |runtime| runtime.now()),
        }
    }

    /// Returns the time when the line is not valid any more, or is being replaced.
    fn compared(&self) -> Ns {
        let mut round = 0;
        loop {
            let old = self.line.try_segment();
            if let Some(old) = old.filter(|old| old.source == SYSTEM) {
                // The counter can have made the line run ahead before it was given up.
                return system_now().max(old.start.ns);
            }
            if let Some(now) = old.and_then(|old| self.correct(old, compare())) {
                return now;
            }
            // In a forked child, the thread that was correcting the clock does not exist: do not
            // wait for it.
            if !self.process.is_this() {
                return system_now();
            }
            relax(round);
            round = round.saturating_add(1);
            if let Some(now) = self.line.try_now(counter::read) {
                return now;
            }
        }
    }

    /// Replaces the line `old`, or gives up the counter, after a comparison of the clocks. Returns
    /// the time of the comparison; `None` if another thread has replaced the line, or is about to.
    fn correct(&self, old: Segment, now: Moment) -> Option<Ns> {
        let mut discipline = self.try_discipline()?;
        if self.line.try_segment() != Some(old) {
            return None;
        }
        if let Some(read) = old.at(now.counter) {
            return Some(read.ns); // The counter was read before the line began, and now again.
        }
        let mut next = discipline.next(now, old);
        if discipline.odd_steps() > 0 {
            // The kernel compares the counter with other clocks all the time, so check whether it
            // still trusts the counter.
            let is_unsteady = discipline.odd_steps() >= ODD_STEPS_MAX;
            let unsteady = is_unsteady.then_some(Fallback::Unsteady);
            if let Some(fallback) = counter::trust().err().or(unsteady) {
                next = Segment { source: SYSTEM, span: 0, ..next };
                self.set_fallback(fallback);
            }
        }
        self.line.redraw(next);
        Some(next.start.ns)
    }

    fn try_discipline(&self) -> Option<MutexGuard<'_, Discipline>> {
        match self.discipline.try_lock() {
            Ok(discipline) => Some(discipline),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
impl HostClock {
    /// Makes the clock find that the counter went on for a long time, in which the system stood.
    #[cfg(linux_platform)]
    pub fn suspend(&self) {
        let mut discipline = self.try_discipline().expect("no other thread reads the clock");
        let from = compare();
        while system_now().since(from.system) < CALIBRATION {}
        let ahead = from.counter / 2;
        let before = |now: Moment| Moment { counter: now.counter - ahead, ..now };
        *discipline = Discipline::new(before(from), before(compare()));
        assert!(self.line.redraw(discipline.first(TSC)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the clock follows `CLOCK_MONOTONIC`, however inexact the first calibration was.
    #[test]
    fn follows_the_system() {
        let clock = HostClock::new();
        let until = system_now().after(Ns::from_ms(if cfg!(miri) { 1 } else { 400 }));
        while system_now() < until {
            clock.now();
        }
        let (before, ours, after) = (system_now(), clock.now(), system_now());
        let apart = before.since(ours).0.max(ours.since(after).0);
        assert!(apart < 20_000, "{apart} ns apart ({:?})", clock.source());
    }

    /// Goal: after the counter was given up, time still does not go back (C8: time is monotonic),
    /// and it runs at the system's rate (C9: fall back).
    #[test]
    fn time_is_monotonic_when_the_counter_is_given_up() {
        let clock = HostClock::new();
        if clock.source() != ClockSource::Tsc {
            assert!(clock.fallback().is_some(), "a reason is reported");
            return;
        }
        assert_eq!((clock.fallback(), clock.take_new_fallback()), (None, None));
        let before = (clock.now(), system_now());
        let mut unsteady = compare();
        for step in 1..=ODD_STEPS_MAX {
            assert_eq!(clock.fallback(), None, "step {step}");
            unsteady.counter += 1 << 42;
            let line = clock.line.try_segment().unwrap();
            assert!(clock.correct(line, unsteady).is_some());
        }
        assert_eq!(clock.source(), ClockSource::ClockGettime);
        assert_eq!(clock.fallback(), Some(Fallback::Unsteady));
        let reported = [clock.take_new_fallback(), clock.take_new_fallback()];
        assert_eq!(reported, [Some(Fallback::Unsteady), None], "it is reported once");
        let mut last = before.0;
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let (ours, system) = (clock.now() - before.0, system_now() - before.1);
        assert!(ours.abs_diff(system).as_micros() < 1000, "{ours:?} against {system:?}");
    }
}
