//! A clock that a program moves: it stands still, or runs with real time.
//!
//! Several sets of timers may run on one. Reading it takes no lock. Nothing it has shown is ever
//! taken back, not even when it is stopped while others read it.

use crate::platform::system_clock::system_now;
use crate::platform::time_base::Steps;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tickless_core::time::Ns;

/// A clock that is moved by hand, by one thread at a time.
#[derive(Debug, Default)]
pub struct ManualClock {
    shown: AtomicU64,
    /// How far it is ahead of `CLOCK_MONOTONIC` while it runs, wrapping.
    ahead: AtomicU64,
    runs: AtomicBool,
    /// How far it has moved the clocks beside this one.
    pub steps: Steps,
}

impl ManualClock {
    /// A clock that stands still.
    pub fn at(now: Ns) -> ManualClock {
        let steps = Steps::of_virtual_time();
        ManualClock { shown: AtomicU64::new(now.0), steps, ..ManualClock::default() }
    }

    /// What it shows.
    #[inline]
    pub fn now(&self) -> Ns {
        // Acquire, here and below: who sees the new time sees what was done before it was set.
        if self.runs.load(Ordering::Acquire) { self.running() } else { self.standing() }
    }

    fn standing(&self) -> Ns {
        Ns(self.shown.load(Ordering::Acquire))
    }

    #[cold]
    fn running(&self) -> Ns {
        let now = system_now().0.wrapping_add(self.ahead.load(Ordering::Relaxed));
        // What it shows while it runs is kept, so that it cannot show less after it stops.
        Ns(self.shown.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// Moves it on. Ignored when that would turn it back (D5).
    pub fn set(&self, to: Ns) {
        if self.runs.load(Ordering::Relaxed) && to > self.running() {
            self.ahead.store(to.0.wrapping_sub(system_now().0), Ordering::Relaxed);
        }
        self.shown.fetch_max(to.0, Ordering::AcqRel);
    }

    /// From now on it runs with real time.
    pub fn run(&self) {
        self.ahead.store(self.standing().0.wrapping_sub(system_now().0), Ordering::Relaxed);
        // Release: who sees that it runs knows from where.
        self.runs.store(true, Ordering::Release);
    }

    /// From now on it stands still.
    pub fn stop(&self) {
        self.running();
        self.runs.store(false, Ordering::Release);
    }

    /// Does it run with real time?
    pub fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_turned_back() {
        let clock = ManualClock::at(Ns(5));
        clock.set(Ns(9));
        clock.set(Ns(7));
        assert_eq!(clock.now(), Ns(9));
    }

    /// Goal: monotonic for every reader, however often it is stopped, started and moved.
    #[test]
    fn it_never_shows_less() {
        let clock = ManualClock::at(Ns::from_secs(1));
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let mut last = Ns::ZERO;
                    while !done.load(Ordering::Relaxed) {
                        let now = clock.now();
                        assert!(now >= last, "{now:?} after {last:?}");
                        last = now;
                    }
                });
            }
            for round in 0..if cfg!(miri) { 20 } else { 20_000 } {
                clock.run();
                if round % 3 == 0 {
                    clock.set(clock.now().after(Ns(round * 10)));
                }
                clock.stop();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(clock.now() > Ns::from_secs(1), "it ran at times");
    }
}
