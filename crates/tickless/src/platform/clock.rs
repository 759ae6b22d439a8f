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
//! system's clock itself (`Builder::system_clock`).
//!
//! Where the kernel does not trust the counter (current clock source not `tsc`), or there is
//! none, every read asks `CLOCK_MONOTONIC`. If the kernel ceases to trust it while we run, or
//! the counter contradicts it time and again, the line goes on over `CLOCK_MONOTONIC` from
//! where it stands (C8, C9); [`fallback`](HostClock::fallback) says why.
//!
//! The line and the discipline are [`tickless_clock`]'s.

use crate::platform::clock_error::Fallback;
use crate::platform::comparison::compare;
use crate::platform::counter;
use crate::platform::fork::Process;
use crate::platform::manual_clock::ManualClock;
use crate::platform::relax::relax;
use crate::platform::system_clock::{system_now, system_time};
use crate::platform::time_base::{Steps, TimeBase};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use tickless_core::clock::counter::Width;
use tickless_core::clock::discipline::{Discipline, EVERY, Moment, Step};
use tickless_core::clock::line::Line;
use tickless_core::clock::segment::{Segment, SourceId};
use tickless_core::clock::slope::{Point, Slope};
use tickless_core::time::Ns;

/// Where the time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClockSource {
    /// The CPU's time-stamp counter, disciplined by `CLOCK_MONOTONIC`.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    ClockGettime,
    /// The program's own hand: virtual time.
    Manual,
}

/// A monotonic clock in nanoseconds. Reading it takes no lock and no system call.
// In this order: what is read each time does not stand first, as it would have the clock's own
// address. Compilers compute that anew for each reading then: an instruction more.
#[repr(C)]
#[derive(Debug)]
pub struct HostClock {
    /// Who moves it, if the program does.
    manual: Arc<ManualClock>,
    kind: Kind,
    /// Over [`TSC`], or over [`SYSTEM`] once the counter was given up.
    line: Line<AtomicU64>,
    process: Process,
    /// Held by who compares the clocks; nobody waits for it.
    judge: Mutex<Judge>,
    /// Set once, by the judge or at the start.
    fallback: OnceLock<Fallback>,
    /// Nobody has asked since it was set.
    is_news: AtomicBool,
}

/// What a clock reads from its beginning to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Line,
    System,
    Manual,
}

/// What is known of the counter.
#[derive(Debug)]
struct Judge {
    discipline: Discipline,
    /// Comparisons in a row that did not fit the rate.
    odd_steps: u32,
}

/// The line's counters.
const TSC: SourceId = SourceId(0);
const SYSTEM: SourceId = SourceId(1);

/// The first measurement of the rate takes this long.
const CALIBRATION: Ns = Ns::from_ms(1);
/// So many odd steps in a row are no suspends. After two of them the rate has been measured
/// anew, so it takes a counter that keeps changing its rate to get here.
const ODD_STEPS_MAX: u32 = 8;

impl HostClock {
    /// The best clock that this machine has. Takes a millisecond for the first calibration.
    pub fn new() -> HostClock {
        if let Err(fallback) = counter::trust() {
            let clock = HostClock::system();
            clock.note(fallback);
            return clock;
        }
        let from = compare();
        let mut to = compare();
        while to.system.since(from.system) < CALIBRATION {
            to = compare();
        }
        HostClock::with(Kind::Line, Discipline::new(from, to), to)
    }

    /// `CLOCK_MONOTONIC` itself.
    pub fn system() -> HostClock {
        HostClock::without_counter(Kind::System)
    }

    /// What one of the clocks shows that deadlines may be given on.
    pub fn now_on(&self, base: TimeBase) -> Ns {
        let shown = match (base, self.kind) {
            (TimeBase::Monotonic, _) => return self.now(),
            (_, Kind::Manual) => self.now(),
            (base, _) => system_time(base),
        };
        Ns(shown.0.saturating_add_signed(self.steps().of(base)))
    }

    /// How far a program has moved the clocks beside this one: virtual time's, or in tests.
    pub fn steps(&self) -> &Steps {
        &self.manual.steps
    }

    /// A clock that shows what this one does.
    pub fn manual(manual: Arc<ManualClock>) -> HostClock {
        HostClock { manual, ..HostClock::without_counter(Kind::Manual) }
    }

    fn without_counter(kind: Kind) -> HostClock {
        let never = Moment { counter: 0, system: Ns::ZERO, doubt: 0 };
        HostClock::with(kind, Discipline::new(never, never), never)
    }

    fn with(kind: Kind, discipline: Discipline, now: Moment) -> HostClock {
        let line = Line::new(Segment {
            source: TSC,
            width: Width::FULL,
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
            is_news: AtomicBool::new(false),
        }
    }

    /// Where the time comes from.
    pub fn source(&self) -> ClockSource {
        match self.kind {
            Kind::Manual => ClockSource::Manual,
            Kind::System => ClockSource::ClockGettime,
            // While it is being replaced, whatever it was.
            Kind::Line => match self.line.try_segment().map(|segment| segment.source) {
                Some(SYSTEM) => ClockSource::ClockGettime,
                _ => ClockSource::Tsc,
            },
        }
    }

    /// Why the time does not come from the counter, if that was not the program's wish.
    pub fn fallback(&self) -> Option<Fallback> {
        self.fallback.get().copied()
    }

    /// The same once, for the first that asks since it has come about: to tell the user, which
    /// nothing here does, since it may be under a lock. Otherwise costs a load.
    #[inline]
    pub fn take_new_fallback(&self) -> Option<Fallback> {
        if !self.is_news.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire: pairs with the Release in `note`, so that the reason is there.
        self.is_news.swap(false, Ordering::Acquire).then(|| self.fallback()).flatten()
    }

    fn note(&self, fallback: Fallback) {
        self.fallback.get_or_init(|| fallback);
        // Release: pairs with the Acquire in `take_new_fallback`.
        self.is_news.store(true, Ordering::Release);
    }

    /// The present. About 11 ns with a TSC, most of it the instruction itself.
    #[inline]
    pub fn now(&self) -> Ns {
        self.try_now().unwrap_or_else(|| self.now_otherwise())
    }

    /// The same if it takes neither calls nor stack: by the counter, while its line is not being
    /// replaced.
    #[inline]
    pub fn try_now(&self) -> Option<Ns> {
        if self.kind != Kind::Line {
            return None;
        }
        let read = |source| (source == TSC).then(counter::read);
        let (segment, count) = self.line.try_read(read)?;
        // The counter has the width that `with` gave it, so none has to be computed.
        Some(Segment { width: Width::FULL, ..segment }.at(count).ns)
    }

    #[inline(never)]
    fn now_otherwise(&self) -> Ns {
        match self.kind {
            Kind::Line => self.line.try_at(count).unwrap_or_else(|| self.wait()),
            Kind::System => system_now(),
            Kind::Manual => self.manual.now(),
        }
    }

    /// Until the line has been replaced.
    #[cold]
    fn wait(&self) -> Ns {
        let mut round = 0;
        loop {
            relax(round);
            round = round.saturating_add(1);
            if let Some(now) = self.line.try_at(count) {
                return now;
            }
            // Who replaces it has not come along into this process.
            if !self.process.is_this() {
                return system_now();
            }
        }
    }

    /// This clock's `deadline` on `CLOCK_MONOTONIC`, for the kernel. Compares the two clocks
    /// by the way and corrects this one when that has not been done for a while.
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

    /// Was the line drawn so long ago that it wants correcting, or has the counter gone back
    /// behind it? Never once the counter was given up.
    fn is_due(&self, now: Moment) -> bool {
        self.line.try_segment().is_some_and(|segment| {
            let age = segment.at(now.counter).ns.since(segment.start.ns);
            segment.source == TSC && (age > EVERY || now.counter < segment.count0)
        })
    }

    /// What this clock showed at that moment.
    fn now_at(&self, moment: Moment) -> Ns {
        let count = |source| if source == TSC { moment.counter } else { moment.system.0 };
        self.line.try_at(count).unwrap_or_else(|| self.wait())
    }

    fn correct(&self, now: Moment) {
        let Some(mut judge) = self.try_judge() else {
            return; // Somebody else is at it.
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
            // The kernel compares the counter with others all the time: ask it, now that there
            // is a reason to.
            let unsteady = (judge.odd_steps >= ODD_STEPS_MAX).then_some(Fallback::Unsteady);
            if let Some(fallback) = counter::trust().err().or(unsteady) {
                self.give_up_counter();
                self.note(fallback);
                return;
            }
        }
        // The joint is where the counter stands when nobody can read the line any more: every
        // reading by the old line came from a lower count and every later one starts from
        // there, so time does not go back however long ago the comparison was (C8).
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

    /// Goes on over `CLOCK_MONOTONIC`, from where the counter has brought us.
    fn give_up_counter(&self) {
        self.line.redraw(|old| {
            let start = old.at(counter::read_ordered());
            let slope = Slope::ONE;
            Segment { source: SYSTEM, count0: system_now().0, start, slope, ..old }
        });
    }
}

impl Default for HostClock {
    fn default() -> Self {
        HostClock::new()
    }
}

/// What the line's counter stands at.
fn count(source: SourceId) -> u64 {
    if source == TSC { counter::read() } else { system_now().0 }
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

    /// Goal: C8, C9: a counter that was given up leaves the clock going, forwards and at the
    /// system's speed, and deadlines are handed to the kernel as before.
    #[test]
    fn goes_on_when_the_counter_is_given_up() {
        let clock = HostClock::new();
        if clock.source() != ClockSource::Tsc {
            assert!(clock.fallback().is_some(), "it says why");
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
        let told = [clock.take_new_fallback(), clock.take_new_fallback()];
        assert_eq!(told, [Some(Fallback::Unsteady), None], "it is told once");
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
