//! Whether two CPUs read the same counter alike.
//!
//! A counter that each CPU has to itself, as the TSC is, may be ahead on one of them. Nobody
//! sees that from one CPU; a thread that moves, or two that talk, see time go back (C8). So
//! the CPUs take turns: each reads the counter and leaves the reading behind, and whoever finds
//! a reading ahead of its own has found a *warp*.
//!
//! The turns are a word that is handed on with Release and Acquire, so that a later turn's
//! reading is ordered after the one before it. How often CPUs alternate, and with whom, is the
//! caller's affair; a thousand turns for each pair take well under a millisecond on real
//! machines.
//!
//! Source of the idea: the kernel's check of TSC synchronisation between CPUs.

use crate::clock::counter::Width;
use crate::word::{Ordering, Word};
use core::fmt;

/// The reading that CPUs hand to each other.
#[derive(Debug)]
pub struct Handover<W> {
    width: Width,
    /// The last reading that nobody found a warp with.
    last: W,
    /// How far readings went back at most.
    worst: W,
    warps: W,
}

/// What a skew check has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skew {
    /// Turns in which a CPU read less than the one before it had.
    pub warps: u64,
    /// How much less at most, in counts.
    pub worst: u64,
}

impl Skew {
    /// Did all CPUs read alike?
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
    /// Before the first turn; `now` is a reading from whichever CPU.
    pub fn new(width: Width, now: u64) -> Handover<W> {
        Handover { width, last: W::new(now), worst: W::new(0), warps: W::new(0) }
    }

    /// One turn of the calling CPU: reads the counter after what it finds, and leaves the
    /// reading behind. If another CPU's turn comes in between, this one reads again.
    pub fn take_turn(&self, read: impl Fn() -> u64) {
        // Acquire, here and on failure: pairs with the Release below; the counter is read after
        // whoever left this.
        let mut before = self.last.load(Ordering::Acquire);
        loop {
            let now = read();
            let is_behind = self.width.elapsed(before, now) == 0 && before != now;
            let left = if is_behind { before } else { now };
            // Release: pairs with the Acquire of the next turn.
            let order = (Ordering::Release, Ordering::Acquire);
            match self.last.compare_exchange(before, left, order.0, order.1) {
                Ok(_) if is_behind => return self.warped(self.width.elapsed(now, before)),
                Ok(_) => return,
                Err(newer) => before = newer,
            }
        }
    }

    /// What has been found so far.
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

/// Relaxed: nothing but the count itself is to be seen.
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

    /// Goal: C8: a CPU whose counter is behind is found, with how far; wraps are no warps.
    #[test]
    fn a_cpu_that_is_behind_is_found() {
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

    /// Goal: a turn that another CPU's came between is judged by what that one left.
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
