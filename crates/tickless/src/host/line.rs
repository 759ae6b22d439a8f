//! A straight line from counter readings to nanoseconds, which is replaced while it is read.
//!
//! A sequence lock: readers take what they have read if no replacement began or was under way
//! meanwhile. While the line is being replaced nobody can read it, which is the point: no
//! reading by the old line is newer than the joint of the two (C8).

use super::fork::Process;
use super::{clock, lock};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use tickless_core::time::Ns;

/// `ns = ns0 + ((counter - counter0) * mult >> SHIFT)`.
#[derive(Debug)]
pub struct Line {
    /// Odd while the rest is being written.
    sequence: AtomicU32,
    counter0: AtomicU64,
    ns0: AtomicU64,
    mult: AtomicU64,
    process: Process,
}

/// 2^-32 ns is fine enough: a second's worth of cycles errs by less than a nanosecond.
pub const SHIFT: u32 = 32;

impl Line {
    pub fn new(counter: u64, ns: Ns, mult: u64) -> Line {
        Line {
            sequence: AtomicU32::new(0),
            counter0: AtomicU64::new(counter),
            ns0: AtomicU64::new(ns.0),
            mult: AtomicU64::new(mult),
            process: Process::this(),
        }
    }

    /// The time at which the counter stood there. A counter that has gone back stands still.
    #[inline]
    pub fn at(&self, counter: u64) -> Ns {
        match self.read(counter) {
            Some(ns) => ns,
            None => self.wait(counter),
        }
    }

    /// Was this line drawn more than `age` before the counter stood there, or after?
    pub fn is_older_than(&self, age: Ns, counter: u64) -> bool {
        let drawn = Ns(self.ns0.load(Ordering::Relaxed));
        self.at(counter).since(drawn) > age || counter < self.counter0.load(Ordering::Relaxed)
    }

    /// Replaces the line by one that goes on from the joint, or from `at_least` if that is
    /// later. `joint` reads the counter when nobody can read the line any more. One writer at a
    /// time.
    pub fn redraw(&self, joint: impl FnOnce() -> u64, at_least: Ns, mult: u64) {
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(before.wrapping_add(1), Ordering::Relaxed);
        // The fence pairs with the one in `read`: who reads a new part reads the odd number.
        fence(Ordering::Release);
        let joint = joint();
        let ns = self.ns_at(joint).max(at_least);
        self.counter0.store(joint, Ordering::Relaxed);
        self.ns0.store(ns.0, Ordering::Relaxed);
        self.mult.store(mult, Ordering::Relaxed);
        // Release: who sees the even number sees the parts.
        self.sequence.store(before.wrapping_add(2), Ordering::Release);
    }

    #[inline]
    fn read(&self, counter: u64) -> Option<Ns> {
        // Acquire: the parts are read after the sequence number...
        let before = self.sequence.load(Ordering::Acquire);
        let ns = self.ns_at(counter);
        // ...and before it is read again; the fence pairs with the one in `redraw`.
        fence(Ordering::Acquire);
        (before & 1 == 0 && before == self.sequence.load(Ordering::Relaxed)).then_some(ns)
    }

    #[inline]
    fn ns_at(&self, counter: u64) -> Ns {
        let cycles = counter.saturating_sub(self.counter0.load(Ordering::Relaxed));
        let mult = self.mult.load(Ordering::Relaxed);
        let ns = ((u128::from(cycles) * u128::from(mult)) >> SHIFT) as u64;
        Ns(self.ns0.load(Ordering::Relaxed).saturating_add(ns))
    }

    /// Until the line has been replaced.
    #[cold]
    fn wait(&self, counter: u64) -> Ns {
        let mut round = 0;
        loop {
            lock::relax(round);
            round = round.saturating_add(1);
            if let Some(ns) = self.read(counter) {
                return ns;
            }
            // Who replaces it has not come along into this process.
            if !self.process.is_this() {
                return clock::system_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Goal: C8: while the line is bent to and fro, no reader sees time go back.
    #[test]
    fn never_goes_back() {
        let rounds = if cfg!(miri) { 50 } else { 200_000 };
        let line = Line::new(0, Ns(5), 1 << SHIFT);
        let (counter, done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|s| {
            let reader = || {
                let mut last = Ns::ZERO;
                while !done.load(Ordering::Relaxed) {
                    let now = line.at(counter.load(Ordering::SeqCst));
                    assert!(now >= last, "{now:?} after {last:?}");
                    last = now;
                }
            };
            s.spawn(reader);
            s.spawn(reader);
            for round in 0..rounds {
                counter.fetch_add(3, Ordering::SeqCst);
                let mult = [1u64 << 31, 1 << 33][round % 2];
                line.redraw(|| counter.fetch_add(2, Ordering::SeqCst), Ns::ZERO, mult);
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_counter_that_goes_back_stands_still() {
        let line = Line::new(1000, Ns(50), 1 << SHIFT);
        assert_eq!([line.at(1007), line.at(3)], [Ns(57), Ns(50)]);
        assert!(line.is_older_than(Ns::from_secs(1), 999));
        line.redraw(|| 4, Ns(80), 2 << SHIFT);
        assert_eq!([line.at(4), line.at(14)], [Ns(80), Ns(100)]);
        assert!(line.is_older_than(Ns(9), 10) && !line.is_older_than(Ns(12), 10));
    }
}
