//! The monotonic clock that timers use on this machine.
//!
//! Its time is a linear function of the CPU's counter, called the *line*. A reading costs about 11
//! ns, and one of `CLOCK_MONOTONIC` through the vDSO about 27 ns. Driver threads compare the two
//! and correct the slope: a new line begins where the old one ends, so time never goes back.
//!
//! This clock's rate mostly differs from the rate of the system's clock by a few ppm, and for a
//! while after a disturbed calibration or a suspend by a few hundred ppm. So a deadline that is
//! exact here can be a fraction of a microsecond early on the system's clock.
//! `Builder::system_clock` makes timers use the system's clock instead.
//!
//! Without a counter that the kernel trusts, every reading is one of `CLOCK_MONOTONIC`. If the
//! kernel stops trusting the counter later, or the counter contradicts the system's clock
//! repeatedly, this clock continues at the rate of `CLOCK_MONOTONIC`;
//! [`fallback`](HostClock::fallback) returns the reason.

use crate::platform::clock_error::Fallback;
use crate::platform::comparison::compare;
use crate::platform::counter;
use crate::platform::fork::Process;
use crate::platform::manual_clock::ManualClock;
use crate::platform::relax::relax;
use crate::platform::runtime::Runtime;
use crate::platform::system_clock::{system_now, system_time};
use crate::platform::time_base::{Steps, TimeBase};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use tickless_core::clock::discipline::{Discipline, EVERY, Moment, Step};
use tickless_core::clock::line::Line;
use tickless_core::clock::segment::{Segment, SourceId};
use tickless_core::clock::slope::{Point, Slope};
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
    /// Converts a count to time. The counter is [`TSC`], or [`SYSTEM`] after the TSC was given up.
    line: Line<AtomicU64>,
    process: Process,
    /// Held by the thread that compares the counter with the system's clock. Other threads skip the
    /// comparison instead of waiting.
    judge: Mutex<Judge>,
    /// Why the counter is not used. Set at most once: at the start, or after a comparison.
    fallback: OnceLock<Fallback>,
    /// Whether there is a fallback that `take_new_fallback` has not returned yet.
    is_fallback_new: AtomicBool,
    /// The asynchronous runtime whose clock is read, for [`Kind::Runtime`].
    runtime: Option<Arc<dyn Runtime>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Line,
    System,
    Manual,
    Runtime,
}

/// What the comparisons of the counter with the system's clock have shown so far.
#[derive(Debug)]
struct Judge {
    discipline: Discipline,
    /// How many comparisons in a row have not fitted the known rate of the counter.
    odd_steps: u32,
}

/// The two counters that a clock can convert to time: the CPU's, and `CLOCK_MONOTONIC` in ns.
const TSC: SourceId = SourceId(0);
const SYSTEM: SourceId = SourceId(1);

/// How long the first calibration spins. The worst of 300 on a busy virtual machine was 30 ppm off
/// (after 1 ms: 11 ppm): 3 us until the first correction, which comes after 100 ms ([`EVERY`]).
const CALIBRATION: Ns = Ns::from_us(500);
/// If this many comparisons in a row do not fit the counter's known rate, the counter is given up.
/// After a suspend at most two do not fit: the rate that the second measures is then the known one.
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
        HostClock::with(Kind::Line, Discipline::new(from, to), to)
    }

    pub fn system() -> HostClock {
        HostClock::without_counter(Kind::System)
    }

    /// Returns the time on another clock, including the steps by which a test has moved that clock.
    pub fn now_on(&self, base: TimeBase) -> Ns {
        let shown = match (base, self.kind) {
            (TimeBase::Monotonic, _) => return self.now(),
            (_, Kind::Manual) => self.now(),
            (base, _) => system_time(base),
        };
        Ns(shown.0.saturating_add_signed(self.steps().of(base)))
    }

    pub fn steps(&self) -> &Steps {
        &self.manual.steps
    }

    pub fn manual(manual: Arc<ManualClock>) -> HostClock {
        HostClock { manual, ..HostClock::without_counter(Kind::Manual) }
    }

    #[cfg_attr(not(feature = "tokio-time"), expect(dead_code, reason = "tokio's runtimes only"))]
    pub fn of_runtime(runtime: Arc<dyn Runtime>) -> HostClock {
        HostClock { runtime: Some(runtime), ..HostClock::without_counter(Kind::Runtime) }
    }

    fn without_counter(kind: Kind) -> HostClock {
        let never = Moment { counter: 0, system: Ns::ZERO, doubt: 0 };
        HostClock::with(kind, Discipline::new(never, never), never)
    }

    fn with(kind: Kind, discipline: Discipline, now: Moment) -> HostClock {
        let line = Line::new(Segment {
            source: TSC,
            count0: now.counter,
            start: Point::at(now.system),
            slope: discipline.slope(),
        });
        HostClock {
            kind,
            line,
            process: Process::this(),
            manual: Arc::default(),
            judge: Mutex::new(Judge { discipline, odd_steps: 0 }),
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

    /// Returns whether an instant of this clock means the same time on `other`, except for the few
    /// ppm by which the rate of a [`Kind::Line`] differs from that of the system's clock.
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
    /// reads the TSC. Waits while another thread corrects the clock.
    #[inline]
    pub fn now(&self) -> Ns {
        self.try_now().unwrap_or_else(|| self.now_slow())
    }

    /// Returns the current time if it comes from the counter and no other thread is correcting the
    /// clock. Short enough to be inlined: it calls no other function and needs no stack.
    #[inline]
    pub fn try_now(&self) -> Option<Ns> {
        if self.kind != Kind::Line {
            return None;
        }
        let read = |source| (source == TSC).then(counter::read);
        let (segment, count) = self.line.try_read(read)?;
        Some(segment.at(count).ns)
    }

    /// Reads a clock that uses no counter, or waits until the clock has been corrected.
    #[inline(never)]
    fn now_slow(&self) -> Ns {
        match self.kind {
            Kind::Line => self.line.try_at(count).unwrap_or_else(|| self.wait()),
            Kind::System => system_now(),
            Kind::Manual => self.manual.now(),
            Kind::Runtime => self.runtime.as_ref().map_or(Ns::ZERO, |runtime| runtime.now()),
        }
    }

    /// Waits until another thread has corrected the clock, and returns the time.
    #[cold]
    fn wait(&self) -> Ns {
        let mut round = 0;
        loop {
            relax(round);
            round = round.saturating_add(1);
            if let Some(now) = self.line.try_at(count) {
                return now;
            }
            // In a forked child, the thread that was correcting the clock does not exist: do not
            // wait for it.
            if !self.process.is_this() {
                return system_now();
            }
        }
    }

    /// Converts `deadline` from this clock to `CLOCK_MONOTONIC`, so that the kernel can wait for
    /// it. Also corrects this clock if the last correction is older than [`EVERY`].
    pub fn to_system(&self, deadline: Ns) -> Ns {
        if self.kind != Kind::Line || deadline == Ns::NEVER {
            return deadline;
        }
        let now = compare();
        if self.is_due(now) {
            self.correct(now);
        }
        now.system.after(deadline.since(self.now_at(now)))
    }

    /// Returns whether the clock must be corrected: the last correction is older than [`EVERY`], or
    /// the counter is behind its value at that correction. `false` after the counter was given up.
    fn is_due(&self, now: Moment) -> bool {
        self.line.try_segment().is_some_and(|segment| {
            let age = segment.at(now.counter).ns.since(segment.start.ns);
            segment.source == TSC && (age > EVERY || now.counter < segment.count0)
        })
    }

    fn now_at(&self, moment: Moment) -> Ns {
        let count = |source| if source == TSC { moment.counter } else { moment.system.0 };
        self.line.try_at(count).unwrap_or_else(|| self.wait())
    }

    /// Compares the clock with the system's, and corrects its speed; or gives up the counter.
    fn correct(&self, now: Moment) {
        let Some(mut judge) = self.try_judge() else {
            return; // Another thread is comparing the clocks.
        };
        if self.fallback.get().is_some() {
            return;
        }
        let course = judge.discipline.compare(now, self.now_at(now));
        judge.odd_steps = match course.step {
            Step::Steady => 0,
            Step::Odd | Step::Anew => judge.odd_steps + 1,
        };
        if judge.odd_steps > 0 {
            // The kernel compares the counter with other clocks all the time, so check whether it
            // still trusts the counter.
            let unsteady = (judge.odd_steps >= ODD_STEPS_MAX).then_some(Fallback::Unsteady);
            if let Some(fallback) = counter::trust().err().or(unsteady) {
                self.give_up_counter();
                self.set_fallback(fallback);
                return;
            }
        }
        // Read the counter inside `redraw`, during which no thread can read the clock. All readings
        // by the old line had a lower count than this, and all by the new line have a higher one.
        // So time does not go back (C8: time is monotonic).
        self.line.redraw(|old| {
            old.continued(counter::read_ordered(), course.slope).not_before(course.at_least)
        });
    }

    fn try_judge(&self) -> Option<MutexGuard<'_, Judge>> {
        match self.judge.try_lock() {
            Ok(judge) => Some(judge),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lets the time run on by the system's clock, from its current value and without a jump.
    fn give_up_counter(&self) {
        self.line.redraw(|old| {
            let start = old.at(counter::read_ordered());
            Segment { source: SYSTEM, count0: system_now().0, start, slope: Slope::ONE }
        });
    }
}

fn count(source: SourceId) -> u64 {
    if source == TSC { counter::read() } else { system_now().0 }
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
            clock.to_system(clock.now());
        }
        let (ours, system) = (clock.now(), system_now());
        let apart = ours.since(system).0.max(system.since(ours).0);
        assert!(apart < 200_000, "{apart} ns apart ({:?})", clock.source());
    }

    /// Goal: after the counter was given up, time still does not go back (C8: time is monotonic),
    /// it runs at the system's rate (C9: fall back), and deadlines are converted for the kernel.
    #[test]
    fn time_is_monotonic_when_the_counter_is_given_up() {
        let clock = HostClock::new();
        if clock.source() != ClockSource::Tsc {
            assert!(clock.fallback().is_some(), "a reason is reported");
            return;
        }
        assert_eq!((clock.fallback(), clock.take_new_fallback()), (None, None));
        let before = (clock.now(), system_now());
        clock.judge.lock().unwrap().odd_steps = ODD_STEPS_MAX - 1;
        let mut unsteady = compare();
        unsteady.system = unsteady.system.after(Ns::from_secs(5));
        clock.correct(unsteady);
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
        let ahead = clock.now().after(Ns::from_ms(50));
        let deadline = clock.to_system(ahead) - system_now();
        assert!((40..=50).contains(&deadline.as_millis()), "{deadline:?}");
    }
}
