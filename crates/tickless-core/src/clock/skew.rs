//! Checks whether two CPUs read the same values from a counter.
//!
//! A counter that exists once in each CPU, as the TSC does, may be ahead on one of them. One CPU
//! alone cannot detect that, but a thread that migrates, or two that communicate, see time go back.
//! In this check the CPUs take turns: each reads the counter and stores its reading, and a CPU that
//! finds a stored reading ahead of its own has found a *warp*.
//!
//! The reading is stored with Release and loaded with Acquire, so that each CPU reads the counter
//! after the previous one. The caller chooses the CPUs and the number of turns. A thousand turns
//! for each pair take well under a millisecond on real machines.
//!
//! Source of the idea: the kernel's check of TSC synchronisation between CPUs.

use crate::clock::counter::Width;
use crate::word::{Ordering, Word};
use core::fmt;

/// The last reading, which each CPU compares with its own and then replaces.
#[derive(Debug)]
pub struct Handover<W> {
    width: Width,
    /// The last reading that was no warp.
    last: W,
    /// The largest step back between readings.
    worst: W,
    warps: W,
}

/// The result of a skew check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skew {
    /// The number of turns in which a CPU read a lower count than the CPU before it.
    pub warps: u64,
    /// The largest difference, in counts.
    pub worst: u64,
}

impl Skew {
    /// Returns whether no reading went back.
    pub const fn is_none(&self) -> bool {
        self.warps == 0
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} readings went back, by {} counts at most", self.warps, self.worst)
    }
}

impl<W: Word> Handover<W> {
    /// Starts a check; `now` is a reading from any CPU.
    pub fn new(width: Width, now: u64) -> Handover<W> {
        Handover { width, last: W::new(now), worst: W::new(0), warps: W::new(0) }
    }

    /// Performs a turn of the calling CPU: reads the counter after the stored reading, compares the
    /// two, and stores its own. If another CPU stores a reading in between, the calling CPU reads
    /// the counter again.
    pub fn take_turn(&self, read: impl Fn() -> u64) {
        // Acquire, here and when the exchange fails: pairs with the Release of the exchange. So
        // this CPU reads the counter after the CPU that stored `before` has read it.
        let mut before = self.last.load(Ordering::Acquire);
        loop {
            let now = read();
            let is_behind = self.width.elapsed(before, now) == 0 && before != now;
            let left = if is_behind { before } else { now };
            // Release: pairs with the Acquire of the CPU that takes the next turn.
            let order = (Ordering::Release, Ordering::Acquire);
            match self.last.compare_exchange(before, left, order.0, order.1) {
                Ok(_) if is_behind => return self.warped(self.width.elapsed(now, before)),
                Ok(_) => return,
                Err(newer) => before = newer,
            }
        }
    }

    /// Returns the result so far.
    pub fn skew(&self) -> Skew {
        let (warps, worst) =
            (self.warps.load(Ordering::Relaxed), self.worst.load(Ordering::Relaxed));
        Skew { warps, worst }
    }

    #[cold]
    fn warped(&self, by: u64) {
        add(&self.warps, |warps| warps.saturating_add(1));
        add(&self.worst, |worst| worst.max(by));
    }
}

/// Relaxed: the count publishes nothing else.
fn add<W: Word>(word: &W, change: impl Fn(u64) -> u64) {
    let mut seen = word.load(Ordering::Relaxed);
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    while let Err(now) = word.compare_exchange(seen, change(seen), order.0, order.1) {
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use core::sync::atomic::AtomicU64;

    /// Goal: a CPU whose counter is behind is detected; a wrap is not reported.
    #[test]
    fn a_cpu_that_is_behind_is_detected() {
        let width = Width::bits(32);
        for behind in [0, 1, 1000] {
            let time = Cell::new(u64::from(u32::MAX) - 50);
            let handover = Handover::<AtomicU64>::new(width, time.get());
            for turn in 0..1000 {
                time.set(time.get() + 1);
                let offset = if turn % 2 == 0 { behind } else { 0 };
                handover.take_turn(|| (time.get() - offset) & width.mask());
            }
            let skew = handover.skew();
            assert_eq!(skew.is_none(), behind <= 1, "{behind}: {skew}");
            assert!(skew.worst < behind.max(1), "{behind}: {skew}");
            assert!(behind != 1000 || skew.worst == 999, "{skew}");
        }
    }

    /// Goal: a CPU whose turn is interrupted compares its reading with the other CPU's.
    #[test]
    fn an_overtaken_turn_reads_again() {
        let handover = Handover::<AtomicU64>::new(Width::FULL, 10);
        let reads = Cell::new(0);
        handover.take_turn(|| {
            reads.set(reads.get() + 1);
            if reads.get() == 1 {
                handover.take_turn(|| 20);
                return 15;
            }
            25
        });
        assert_eq!((reads.get(), handover.skew()), (2, Skew::default()));
    }
}
