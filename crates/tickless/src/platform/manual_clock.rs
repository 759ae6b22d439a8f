//! A clock for virtual time: the program moves it forwards, stops it, or lets it run with real
//! time. Reading it takes no lock. No reader sees it go back, even if it is stopped during the
//! reading.

use crate::platform::system_clock::system_now;
use crate::platform::time_base::Steps;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tickless_core::time::Ns;

/// A clock that the program moves. Any thread may read it; only one thread at a time may move it.
#[derive(Debug, Default)]
pub struct ManualClock {
    /// The latest time that the clock has shown to a reader, or that it was set to.
    shown: AtomicU64,
    /// While the clock runs: its time minus `CLOCK_MONOTONIC`, in wrapping arithmetic.
    ahead: AtomicU64,
    runs: AtomicBool,
    /// How far the program has moved boottime and realtime against this clock.
    pub steps: Steps,
}

impl ManualClock {
    pub fn at(now: Ns) -> ManualClock {
        let steps = Steps::of_virtual_time();
        ManualClock { shown: AtomicU64::new(now.0), steps, ..ManualClock::default() }
    }

    #[inline]
    pub fn now(&self) -> Ns {
        // Acquire, for the flag here and the time below: a thread that sees the new time also sees
        // the writes that the program made before it moved the clock.
        if self.runs.load(Ordering::Acquire) { self.read_running() } else { self.read_stopped() }
    }

    fn read_stopped(&self) -> Ns {
        Ns(self.shown.load(Ordering::Acquire))
    }

    #[cold]
    fn read_running(&self) -> Ns {
        let now = system_now().0.wrapping_add(self.ahead.load(Ordering::Relaxed));
        // Store the returned time: a clock that is stopped shows the stored time, which must not be
        // earlier than any that a reader has seen.
        Ns(self.shown.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// Moves the clock forwards to a time. An earlier time than the current one is ignored.
    pub fn set(&self, to: Ns) {
        if self.runs.load(Ordering::Relaxed) && to > self.read_running() {
            self.ahead.store(to.0.wrapping_sub(system_now().0), Ordering::Relaxed);
        }
        self.shown.fetch_max(to.0, Ordering::AcqRel);
    }

    pub fn run(&self) {
        self.ahead.store(self.read_stopped().0.wrapping_sub(system_now().0), Ordering::Relaxed);
        // Release: pairs with the Acquire in `now`; a thread that sees the flag also sees `ahead`.
        self.runs.store(true, Ordering::Release);
    }

    pub fn stop(&self) {
        self.read_running();
        self.runs.store(false, Ordering::Release);
    }

    pub fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_and_moves_are_monotonic() {
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
