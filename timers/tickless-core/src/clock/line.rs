//! A [segment](super::segment) that one thread replaces while others read it, without locks.
//!
//! It is a sequence lock: readers discard what they have read if a replacement began or was in
//! progress during the read. Whoever replaces a segment takes care that time does not go back: no
//! reading of the old segment is later than its [end](Segment::end).
//!
//! Any thread can read. Only one thread at a time can [redraw](Line::redraw) the line; the call of
//! a second thread fails. If the writer loses its CPU during a replacement, readers wait for it.
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
    span: W,
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
            span: W::new(segment.span),
        }
    }

    /// Returns the current time; `None` while the segment is being replaced, and if the count is
    /// outside its span. `read` reads the segment's counter. The cost besides that is four cache
    /// hits and a multiplication.
    #[inline]
    pub fn try_now(&self, read: impl FnOnce() -> u64) -> Option<Ns> {
        let (segment, count) = self.try_read(SourceId::default, read)?;
        Some(segment.at(count)?.ns)
    }

    /// Returns the current segment; `None` while it is being replaced.
    pub fn try_segment(&self) -> Option<Segment> {
        let source = || SourceId(self.source.load(Ordering::Acquire) as u8);
        self.try_read(source, || 0).map(|(segment, _)| segment)
    }

    /// Returns the segment, with the source that `source` returns, and a reading of its counter
    /// that was taken while the segment was current.
    #[inline]
    fn try_read(
        &self,
        source: impl FnOnce() -> SourceId,
        read: impl FnOnce() -> u64,
    ) -> Option<(Segment, u64)> {
        // Acquire: pairs with the Release at the end of `redraw`, so that the other words, which
        // are read next, are at least as new as this one.
        let head = self.head.load(Ordering::Acquire);
        let count = read();
        let segment = Segment {
            source: source(),
            // Acquire, for each word: pairs with the Release of the same word in `redraw`. A reader
            // that has read a word of a new segment then finds, when it reads `head` again, that
            // the sequence number has changed, and discards what it has read.
            count0: self.count0.load(Ordering::Acquire),
            start: Point { ns: Ns(self.ns0.load(Ordering::Acquire)), fraction: head as u32 },
            slope: Slope(self.slope.load(Ordering::Acquire)),
            span: self.span.load(Ordering::Acquire),
        };
        let is_settled = head & STEP == 0 && head == self.head.load(Ordering::Relaxed);
        is_settled.then_some((segment, count))
    }

    /// Replaces the segment. Returns `false` if another thread is replacing it.
    pub fn redraw(&self, next: Segment) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        // Acquire: pairs with the Release below, so that the words of the last replacement are
        // written before those of this one.
        let (closing, failed) = (Ordering::Acquire, Ordering::Relaxed);
        let odd = head.wrapping_add(STEP);
        if head & STEP != 0 || self.head.compare_exchange(head, odd, closing, failed).is_err() {
            return false;
        }
        // Release, for each word: pairs with the Acquire of the same word in `try_read`.
        self.source.store(next.source.0.into(), Ordering::Release);
        self.count0.store(next.count0, Ordering::Release);
        self.ns0.store(next.start.ns.0, Ordering::Release);
        self.slope.store(next.slope.0, Ordering::Release);
        self.span.store(next.span, Ordering::Release);
        let sequence = odd.wrapping_add(STEP) & !(STEP - 1);
        // Release: pairs with the first Acquire in `try_read`.
        self.head.store(sequence | u64::from(next.start.fraction), Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    #[test]
    fn a_count_outside_the_span_gives_no_time() {
        let start = Point { ns: Ns(5), fraction: 7 };
        let slope = Slope::ONE;
        let segment = Segment { source: SourceId(3), count0: 100, start, slope, span: 10 };
        let line = Line::<AtomicU64>::new(segment);
        assert_eq!([99, 109, 110].map(|count| line.try_now(|| count)), [None, Some(Ns(14)), None]);
        let next = Segment { count0: 200, ..segment };
        assert!(line.redraw(next));
        assert_eq!((line.try_segment(), line.try_now(|| 201)), (Some(next), Some(Ns(6))));
    }
}
