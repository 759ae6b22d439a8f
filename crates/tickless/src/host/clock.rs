//! The host's monotonic clock: the time-stamp counter where the kernel trusts it.
//!
//! The kernel reads the TSC, scales it and disciplines the result; `CLOCK_MONOTONIC` through
//! the vDSO costs about 27 ns here against 11 for the counter. This clock follows
//! `CLOCK_MONOTONIC` by a straight line from one counter reading to the next, and the line is
//! drawn anew (continuously, never backwards) whenever a driver has compared the two. So it
//! neither drifts for the life of the process after one calibration at its start (a peer's
//! users found 83 ppm), nor pays for a system clock on every read.
//!
//! Where the kernel does not trust the counter (current clock source not `tsc`), or there is
//! none, every read asks `CLOCK_MONOTONIC`.

use super::counter;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
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
    manual: AtomicU64,
}

/// `ns = ns0 + ((counter - counter0) * mult >> SHIFT)`, readable while it is being replaced.
#[derive(Debug, Default)]
struct Line {
    /// Odd while the rest is being written.
    sequence: AtomicU32,
    counter0: AtomicU64,
    ns0: AtomicU64,
    mult: AtomicU64,
    /// The first comparison, which the rate is measured from: counter and nanoseconds.
    first: [AtomicU64; 2],
}

/// 2^-32 ns is fine enough: a second's worth of cycles errs by less than a nanosecond.
const SHIFT: u32 = 32;
/// How far the rate may be bent to bring the line back to `CLOCK_MONOTONIC`: 500 ppm, the
/// kernel's own bound for slewing.
const SLEW_PER_NS: f64 = 500e-6;
/// Comparisons closer together than this say little about the rate.
const DISCIPLINE_EVERY: Ns = Ns::from_ms(100);
const CALIBRATION: Ns = Ns::from_ms(1);

impl HostClock {
    /// The best clock that this machine has. Takes a millisecond for the first calibration.
    pub fn new() -> HostClock {
        if !counter::is_trusted() {
            return HostClock::with_source(ClockSource::ClockGettime);
        }
        let clock = HostClock::with_source(ClockSource::Tsc);
        let (counter, ns) = compare();
        let mut now = (counter, ns);
        while now.1.since(ns) < CALIBRATION {
            now = compare();
        }
        let line = &clock.line;
        line.first[0].store(counter, Ordering::Relaxed);
        line.first[1].store(ns.0, Ordering::Relaxed);
        line.redraw(|_| (now.0, now.1, rate((counter, ns), now)));
        clock
    }

    /// `CLOCK_MONOTONIC` itself.
    pub fn system() -> HostClock {
        HostClock::with_source(ClockSource::ClockGettime)
    }

    /// A clock that stands still until it is told otherwise.
    pub fn manual(now: Ns) -> HostClock {
        let clock = HostClock::with_source(ClockSource::Manual);
        clock.manual.store(now.0, Ordering::Relaxed);
        clock
    }

    fn with_source(source: ClockSource) -> HostClock {
        HostClock { source, line: Line::default(), manual: AtomicU64::new(0) }
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
        let (counter, system) = compare();
        let ours = self.line.at(counter);
        if ours.since(Ns(self.line.ns0.load(Ordering::Relaxed))) > DISCIPLINE_EVERY {
            self.line.discipline(counter, ours, system);
        }
        system.after(deadline.since(ours))
    }
}

impl Default for HostClock {
    fn default() -> Self {
        HostClock::new()
    }
}

impl Line {
    #[inline]
    fn at(&self, counter: u64) -> Ns {
        loop {
            // Acquire: the parts are read after the sequence number...
            let before = self.sequence.load(Ordering::Acquire);
            let counter0 = self.counter0.load(Ordering::Relaxed);
            let ns0 = self.ns0.load(Ordering::Relaxed);
            let mult = self.mult.load(Ordering::Relaxed);
            // ...and before it is read again; the fence pairs with the Release stores in
            // `draw`.
            fence(Ordering::Acquire);
            if before & 1 == 0 && before == self.sequence.load(Ordering::Relaxed) {
                return Ns(ns0 + scale(counter.saturating_sub(counter0), mult));
            }
            core::hint::spin_loop();
        }
    }

    /// Replaces the line by what `next` makes of the old one. One writer at a time: the odd
    /// sequence number keeps others out.
    fn redraw(&self, next: impl FnOnce(&Line) -> (u64, Ns, u64)) {
        let before = self.sequence.load(Ordering::Relaxed);
        if before & 1 == 1
            || self
                .sequence
                .compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        // The fence pairs with the one in `at`: who reads a new part reads the odd number.
        fence(Ordering::Release);
        let (counter0, ns0, mult) = next(self);
        self.counter0.store(counter0, Ordering::Relaxed);
        self.ns0.store(ns0.0, Ordering::Relaxed);
        self.mult.store(mult, Ordering::Relaxed);
        // Release: who sees the even number sees the parts.
        self.sequence.store(before.wrapping_add(2), Ordering::Release);
    }

    /// Draws the line anew from where it is now, so that it meets the system's clock again in
    /// about `DISCIPLINE_EVERY`, given that it was `ours` when the system's was `system`.
    fn discipline(&self, counter: u64, ours: Ns, system: Ns) {
        let first =
            (self.first[0].load(Ordering::Relaxed), Ns(self.first[1].load(Ordering::Relaxed)));
        let error = system.0 as f64 - ours.0 as f64;
        let bend = (error / DISCIPLINE_EVERY.0 as f64).clamp(-SLEW_PER_NS, SLEW_PER_NS);
        let mult = rate(first, (counter, system)) as f64 * (1.0 + bend);
        self.redraw(|old| {
            // The joint is where the counter stands *now*, while no reader can finish: every
            // reading by the old line came from a lower count, every later one starts from
            // here, so time does not go back however long ago the comparison was (C8).
            let joint = counter::read().max(old.counter0.load(Ordering::Relaxed));
            let cycles = joint - old.counter0.load(Ordering::Relaxed);
            let ns0 = old.ns0.load(Ordering::Relaxed);
            (joint, Ns(ns0 + scale(cycles, old.mult.load(Ordering::Relaxed))), mult as u64)
        });
    }
}

/// The system's clock, and a counter reading that belongs to it: the closest of a few, since a
/// preemption in between would count as an error of the clock.
fn compare() -> (u64, Ns) {
    let mut best = (u64::MAX, 0, Ns::ZERO);
    for _ in 0..3 {
        let before = counter::read();
        let system = system_now();
        let took = counter::read().saturating_sub(before);
        if took < best.0 {
            best = (took, before + took / 2, system);
        }
    }
    (best.1, best.2)
}

fn rate(from: (u64, Ns), to: (u64, Ns)) -> u64 {
    let cycles = to.0.saturating_sub(from.0).max(1);
    ((u128::from(to.1.since(from.1).0) << SHIFT) / u128::from(cycles)) as u64
}

#[inline]
fn scale(cycles: u64, mult: u64) -> u64 {
    ((u128::from(cycles) * u128::from(mult)) >> SHIFT) as u64
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
            if round % 1000 == 0 {
                let (counter, system) = compare();
                clock.line.discipline(counter, clock.line.at(counter), system);
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
