//! The hand of a clock that a program moves: it stands still, or runs with real time.
//!
//! One hand may move the clocks of several sets of timers. Reading it takes no lock. Nothing it
//! has shown is ever taken back, not even when it is stopped while others read it.

use super::clock::system_now;
use super::time_base::Steps;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tickless_core::time::Ns;

/// What a manual clock shows. One thread at a time moves it.
#[derive(Debug, Default)]
pub struct Hand {
    shown: AtomicU64,
    /// How far it is ahead of `CLOCK_MONOTONIC` while it runs, wrapping.
    ahead: AtomicU64,
    runs: AtomicBool,
    /// How far it has moved the clocks beside this one.
    pub steps: Steps,
}

impl Hand {
    /// A hand that stands still.
    pub fn at(now: Ns) -> Hand {
        let steps = Steps::of_virtual_time();
        Hand { shown: AtomicU64::new(now.0), steps, ..Hand::default() }
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
        let hand = Hand::at(Ns(5));
        hand.set(Ns(9));
        hand.set(Ns(7));
        assert_eq!(hand.now(), Ns(9));
    }

    /// Goal: monotonic for every reader, however often it is stopped, started and moved.
    #[test]
    fn it_never_shows_less() {
        let hand = Hand::at(Ns::from_secs(1));
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let mut last = Ns::ZERO;
                    while !done.load(Ordering::Relaxed) {
                        let now = hand.now();
                        assert!(now >= last, "{now:?} after {last:?}");
                        last = now;
                    }
                });
            }
            for round in 0..if cfg!(miri) { 20 } else { 20_000 } {
                hand.run();
                if round % 3 == 0 {
                    hand.set(hand.now().after(Ns(round * 10)));
                }
                hand.stop();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(hand.now() > Ns::from_secs(1), "it ran at times");
    }
}
