//! A [segment](super::segment) that one thread replaces while others read it, without locks.
//!
//! It is a sequence lock: readers discard what they have read if a replacement began or was in
//! progress during the read. No thread can read the segment while it is being replaced. So no time
//! from the old segment is later than the start of the new one, and time does not go back.
//!
//! Any thread can read. Only one thread at a time can [redraw](Line::redraw) the line; the call of
//! a second thread fails. If the writer loses its CPU during a replacement, readers wait for it.
//!
//! The reading of a counter is assumed to be ordered with the accesses to the words. If a CPU
//! reorders it, as it can reorder a TSC reading by some nanoseconds, a time is wrong by these
//! nanoseconds times the change of slope at a replacement: 100 ns times 500 ppm are 0.05 ns.
//!
//! There are no fences: every word is written with Release and read with Acquire. On x86 this is
//! the same machine code as with fences, elsewhere one more instruction for each word, and the code
//! needs nothing but a platform's words.

use crate::clock::segment::{Segment, SourceId};
use crate::clock::slope::{Point, Slope};
use crate::time::Ns;
use crate::word::{Ordering, Word};

/// The fields of a segment, in atomic words that together fit a cache line.
#[derive(Debug)]
pub struct Line<W> {
    /// The upper half is the sequence number, which is odd while the other words are being written.
    /// The lower half is the start's fraction.
    head: W,
    source: W,
    count0: W,
    ns0: W,
    slope: W,
}

/// One step of the sequence number.
const STEP: u64 = 1 << 32;

impl<W: Word> Line<W> {
    /// Makes a line that begins with this segment.
    pub fn new(segment: Segment) -> Line<W> {
        Line {
            head: W::new(u64::from(segment.start.fraction)),
            source: W::new(segment.source.0.into()),
            count0: W::new(segment.count0),
            ns0: W::new(segment.start.ns.0),
            slope: W::new(segment.slope.0),
        }
    }

    /// Returns the current time. `read` is passed the id of a counter, and returns the count of
    /// that counter. Returns `None` while the segment is being replaced; then the caller tries
    /// again. The cost besides reading the counter is three cache hits and a multiplication.
    #[inline]
    pub fn try_at(&self, read: impl FnOnce(SourceId) -> u64) -> Option<Ns> {
        let (segment, count) = self.try_read(|source| Some(read(source)))?;
        Some(segment.at(count).ns)
    }

    /// Returns the current segment; `None` while it is being replaced.
    pub fn try_segment(&self) -> Option<Segment> {
        self.try_read(|_| Some(0)).map(|(segment, _)| segment)
    }

    /// Returns the segment and a reading of its counter, taken while the segment was current.
    /// Returns `None` while the segment is being replaced, or if `read` returns `None`.
    #[inline]
    pub fn try_read(&self, read: impl FnOnce(SourceId) -> Option<u64>) -> Option<(Segment, u64)> {
        // Acquire: pairs with the Release at the end of `redraw`, so that the other words, which
        // are read next, are at least as new as this one.
        let head = self.head.load(Ordering::Acquire);
        let source = SourceId(self.source.load(Ordering::Acquire) as u8);
        let count = read(source)?;
        let segment = Segment {
            source,
            // Acquire, for each word: pairs with the Release of the same word in `redraw`. A reader
            // that has read a word of a new segment then finds, when it reads `head` again, that
            // the sequence number has changed, and discards what it has read.
            count0: self.count0.load(Ordering::Acquire),
            start: Point { ns: Ns(self.ns0.load(Ordering::Acquire)), fraction: head as u32 },
            slope: Slope(self.slope.load(Ordering::Acquire)),
        };
        let is_settled = head & STEP == 0 && head == self.head.load(Ordering::Relaxed);
        is_settled.then_some((segment, count))
    }

    /// Replaces the segment by the one that `next` returns, and returns that one; `None` if another
    /// thread is replacing the segment. No thread can read the line while `next` runs, so `next`
    /// can read the counter and start the new segment at that count: no thread gets a later time
    /// from the old segment. If `next` panics, the old segment stays.
    pub fn redraw(&self, next: impl FnOnce(Segment) -> Segment) -> Option<Segment> {
        let head = self.head.load(Ordering::Relaxed);
        if head & STEP != 0 {
            return None;
        }
        // SeqCst: a full barrier on CPUs that reorder, so that `next` reads the counter after
        // readers can see the odd sequence number. It includes Acquire, which pairs with the
        // Release in `drop`.
        let (closing, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        self.head.compare_exchange(head, head.wrapping_add(STEP), closing, failed).ok()?;
        let old = self.current(head);
        let mut closed = Closed { line: self, head, fraction: old.start.fraction };
        let segment = next(old);
        // Release, for each word: pairs with the Acquire of the same word in `try_read`.
        self.source.store(segment.source.0.into(), Ordering::Release);
        self.count0.store(segment.count0, Ordering::Release);
        self.ns0.store(segment.start.ns.0, Ordering::Release);
        self.slope.store(segment.slope.0, Ordering::Release);
        closed.fraction = segment.start.fraction;
        Some(segment)
    }

    /// Returns the segment in the words. `head` has the fraction of its start in the lower half.
    fn current(&self, head: u64) -> Segment {
        Segment {
            source: SourceId(self.source.load(Ordering::Relaxed) as u8),
            count0: self.count0.load(Ordering::Relaxed),
            start: Point { ns: Ns(self.ns0.load(Ordering::Relaxed)), fraction: head as u32 },
            slope: Slope(self.slope.load(Ordering::Relaxed)),
        }
    }
}

/// Keeps a line closed, so that no thread can read it, until this guard is dropped.
struct Closed<'a, W: Word> {
    line: &'a Line<W>,
    head: u64,
    fraction: u32,
}

impl<W: Word> Drop for Closed<'_, W> {
    fn drop(&mut self) {
        let sequence = self.head.wrapping_add(2 * STEP) & !(STEP - 1);
        // Release: pairs with the first Acquire in `try_read`.
        self.line.head.store(sequence | u64::from(self.fraction), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU64;

    fn segment(ns: u64) -> Segment {
        let start = Point { ns: Ns(ns), fraction: 7 };
        Segment { source: SourceId(3), count0: 100, start, slope: Slope::ONE }
    }

    #[test]
    fn a_line_is_closed_while_it_is_replaced() {
        let line = Line::<AtomicU64>::new(segment(5));
        let redrawn = line.redraw(|old| {
            assert_eq!(line.try_segment(), None);
            assert_eq!(line.redraw(|old| old), None);
            old.continued(200, Slope(1))
        });
        assert_eq!(redrawn, line.try_segment());
        let panicked = catch_unwind(AssertUnwindSafe(|| line.redraw(|_| panic!("a counter's"))));
        assert!(panicked.is_err());
        assert_eq!(line.try_segment(), redrawn);
    }
}
