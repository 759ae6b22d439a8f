//! A counter that never goes back, over one that may.
//!
//! A timekeeper takes a counter's word for it between two ticks, and if that goes back so does
//! time, to the last tick at most. Who has a counter that may do that, one that is not the same
//! on all CPUs or can be set from outside, puts it behind a ratchet: readings that lie behind
//! the highest so far are held back to it (C8). To the watchdog a counter that goes far back
//! then looks as if it stood still, which is fault enough.
//!
//! A narrow counter must then be read at least once in half its wrap, or the ratchet takes its
//! readings for older ones.
//!
//! The price is one word that all readers share and most of them write. A counter that everybody
//! may trust should not have one.

use crate::clock::counter::{Counter, Hertz, Rating, Width};
use crate::word::{Ordering, Word};

/// A counter behind a ratchet.
#[derive(Debug)]
pub struct Ratchet<W, C> {
    /// The highest reading that was handed out.
    highest: W,
    counter: C,
}

impl<W: Word, C: Counter> Ratchet<W, C> {
    /// Puts a counter behind a ratchet. Reads it once.
    pub fn new(counter: C) -> Ratchet<W, C> {
        Ratchet { highest: W::new(counter.read()), counter }
    }
}

impl<W: Word, C: Counter> Counter for Ratchet<W, C> {
    fn read(&self) -> u64 {
        let (width, now) = (self.counter.width(), self.counter.read());
        // Relaxed: the order of readings is that of the word's own values.
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

    fn width(&self) -> Width {
        self.counter.width()
    }

    fn frequency(&self) -> Hertz {
        self.counter.frequency()
    }

    fn rating(&self) -> Rating {
        self.counter.rating()
    }

    fn name(&self) -> &str {
        self.counter.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    /// A counter of 8 bits that shows what it is told to.
    struct Told(AtomicU64);

    impl Counter for &Told {
        fn read(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn width(&self) -> Width {
            Width::bits(8)
        }

        fn frequency(&self) -> Hertz {
            Hertz::NANOSECONDS
        }

        fn rating(&self) -> Rating {
            Rating::LAST_RESORT
        }

        fn name(&self) -> &str {
            "told"
        }
    }

    /// Goal: C8: what goes back is held back; a wrap is not going back.
    #[test]
    fn holds_back_what_goes_back() {
        let told = Told(AtomicU64::new(250));
        let ratchet = Ratchet::<AtomicU64, _>::new(&told);
        let read = |count| {
            told.0.store(count, Ordering::Relaxed);
            ratchet.read()
        };
        let seen: [u64; 7] = [250, 240, 253, 2, 255, 2, 3].map(read);
        assert_eq!(seen, [250, 250, 253, 2, 2, 2, 3]);
        assert_eq!((ratchet.width(), ratchet.name()), (Width::bits(8), "told"));
    }
}
