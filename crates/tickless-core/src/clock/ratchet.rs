//! Makes a counter that never goes back from one that may.
//!
//! Between two calls of its `tick`, a timekeeper relies on its counter: if the counter goes back,
//! time goes back too, but not to before the last tick. A counter that may do so, because it
//! differs between CPUs or can be set from outside, belongs behind a ratchet, which returns the
//! highest reading so far in place of a lower one. A counter that goes far back then appears to
//! have stopped, which the watchdog detects.
//!
//! A narrow counter must be read at least once in half the time to a wrap, or the ratchet takes new
//! readings for old ones.
//!
//! The cost is one word that all readers share and most of them write. A reliable counter should
//! not have a ratchet.

use crate::clock::counter::{Counter, Width, describe_by};
use crate::word::{Ordering, Word};

/// A counter behind a ratchet.
#[derive(Debug)]
pub struct Ratchet<W, C> {
    /// The highest reading that was returned.
    highest: W,
    counter: C,
}

impl<W: Word, C: Counter> Ratchet<W, C> {
    /// Makes a ratchet over a counter, and reads the counter once.
    pub fn new(counter: C) -> Ratchet<W, C> {
        Ratchet { highest: W::new(counter.read()), counter }
    }
}

impl<W: Word, C: Counter> Counter for Ratchet<W, C> {
    fn read(&self) -> u64 {
        let (width, now) = (Width::bits(self.counter.bits()), self.counter.read());
        // Relaxed: the word publishes no other memory; only the order of its own values matters.
        let mut highest = self.highest.load(Ordering::Relaxed);
        loop {
            if width.elapsed(highest, now) == 0 {
                return highest;
            }
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            match self.highest.compare_exchange(highest, now, order.0, order.1) {
                Ok(_) => return now,
                Err(higher) => highest = higher,
            }
        }
    }

    describe_by!(this => this.counter);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::counter::{Settable, Width};
    use core::sync::atomic::AtomicU64;

    #[test]
    fn a_lower_reading_is_replaced() {
        let settable = Settable::new(Width::bits(8));
        settable.shows.store(250, Ordering::Relaxed);
        let ratchet = Ratchet::<AtomicU64, _>::new(&settable);
        let read = |count| {
            settable.shows.store(count, Ordering::Relaxed);
            ratchet.read()
        };
        let seen: [u64; 7] = [250, 240, 253, 2, 255, 2, 3].map(read);
        assert_eq!(seen, [250, 250, 253, 2, 2, 2, 3]);
        assert_eq!((ratchet.bits(), ratchet.name()), (8, "settable"));
    }
}
