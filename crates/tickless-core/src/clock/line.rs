//! A [segment](super::segment) that is replaced while it is read, without locks.
//!
//! A sequence lock: readers take what they have read if no replacement began or was under way
//! meanwhile. While the segment is being replaced nobody can read it, which is the point: no
//! reading by the old segment is newer than the joint of the two (C8).
//!
//! Who may touch what: anybody reads; one thread at a time [redraws](Line::redraw), and
//! a second one is turned away. Readers of a line whose writer has lost its CPU wait for it.
//!
//! A counter's reading counts as ordered with the words. Where it may move among them, as an
//! unordered TSC reading may by some nanoseconds, time is off by so much times the change of
//! slope at the joint: 500 ppm of 100 ns are a twentieth of a nanosecond.
//!
//! There are no fences: every part is written with Release and read with Acquire, which is the
//! same code on x86 and one instruction more per part elsewhere, and keeps the seam to words.

use crate::clock::counter::Width;
use crate::clock::segment::{Segment, SourceId};
use crate::clock::slope::{Point, Slope};
use crate::time::Ns;
use crate::word::{Ordering, Word};

/// A segment in words. Together they fit a cache line.
#[derive(Debug)]
pub struct Line<W> {
    /// Above: the sequence number, odd while the rest is being written. Below: the start's
    /// fraction.
    head: W,
    /// The source and the width of the counter.
    shape: W,
    count0: W,
    ns0: W,
    slope: W,
}

/// One step of the sequence number.
const STEP: u64 = 1 << 32;

impl<W: Word> Line<W> {
    /// A line that begins with this segment.
    pub fn new(segment: Segment) -> Line<W> {
        Line {
            head: W::new(u64::from(segment.start.fraction)),
            shape: W::new(shape_of(&segment)),
            count0: W::new(segment.count0),
            ns0: W::new(segment.start.ns.0),
            slope: W::new(segment.slope.0),
        }
    }

    /// The time, by the counter that `read` reads; `None` while the segment is being replaced,
    /// and then the caller tries again. Three cache hits and a multiplication besides the
    /// counter.
    #[inline]
    pub fn try_at(&self, read: impl FnOnce(SourceId) -> u64) -> Option<Ns> {
        let (segment, count) = self.try_read(|source| Some(read(source)))?;
        Some(segment.at(count).ns)
    }

    /// The present segment; `None` while it is being replaced.
    pub fn try_segment(&self) -> Option<Segment> {
        self.try_read(|_| Some(0)).map(|(segment, _)| segment)
    }

    /// The segment, and what its counter stood at while it was the line's; `None` while it is
    /// being replaced, or if `read` does not know the counter.
    #[inline]
    pub fn try_read(&self, read: impl FnOnce(SourceId) -> Option<u64>) -> Option<(Segment, u64)> {
        // Acquire: pairs with the Release that ends `redraw`: the parts are at least as new.
        let head = self.head.load(Ordering::Acquire);
        let shape = self.shape.load(Ordering::Acquire);
        let source = SourceId((shape >> 8) as u8);
        let count = read(source)?;
        let segment = Segment {
            source,
            width: Width::restored(shape as u8),
            // Acquire, each: pairs with the Release of the same part in `redraw`. Who has read
            // a new part reads the odd number below, or a later one.
            count0: self.count0.load(Ordering::Acquire),
            start: Point { ns: Ns(self.ns0.load(Ordering::Acquire)), fraction: head as u32 },
            slope: Slope(self.slope.load(Ordering::Acquire)),
        };
        let is_settled = head & STEP == 0 && head == self.head.load(Ordering::Relaxed);
        is_settled.then_some((segment, count))
    }

    /// Replaces the segment by what `next` makes of it, and returns that; `None` if somebody
    /// else is at it. `next` runs when nobody can read the line any more, so the joint is where
    /// it reads the counter. If it panics, the old segment stays.
    pub fn redraw(&self, next: impl FnOnce(Segment) -> Segment) -> Option<Segment> {
        let head = self.head.load(Ordering::Relaxed);
        if head & STEP != 0 {
            return None;
        }
        // SeqCst: not for its order among words, but since it is a full barrier on the CPUs
        // that reorder: `next` reads the counter when the odd number is out. Acquire, by the
        // way, of what the last writer left; pairs with the Release in `drop`.
        let (closing, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        self.head.compare_exchange(head, head.wrapping_add(STEP), closing, failed).ok()?;
        let old = self.as_left(head);
        let mut closed = Closed { line: self, head, fraction: old.start.fraction };
        let segment = next(old);
        // Release, each: pairs with the Acquire of the same part in `try_read`.
        self.shape.store(shape_of(&segment), Ordering::Release);
        self.count0.store(segment.count0, Ordering::Release);
        self.ns0.store(segment.start.ns.0, Ordering::Release);
        self.slope.store(segment.slope.0, Ordering::Release);
        closed.fraction = segment.start.fraction;
        Some(segment)
    }

    /// The segment, for its one writer.
    fn as_left(&self, head: u64) -> Segment {
        let shape = self.shape.load(Ordering::Relaxed);
        Segment {
            source: SourceId((shape >> 8) as u8),
            width: Width::restored(shape as u8),
            count0: self.count0.load(Ordering::Relaxed),
            start: Point { ns: Ns(self.ns0.load(Ordering::Relaxed)), fraction: head as u32 },
            slope: Slope(self.slope.load(Ordering::Relaxed)),
        }
    }
}

/// A line that nobody can read; opened when dropped.
struct Closed<'a, W: Word> {
    line: &'a Line<W>,
    head: u64,
    fraction: u32,
}

impl<W: Word> Drop for Closed<'_, W> {
    fn drop(&mut self) {
        let sequence = self.head.wrapping_add(2 * STEP) & !(STEP - 1);
        // Release: pairs with the Acquire that begins `try_read`.
        self.line.head.store(sequence | u64::from(self.fraction), Ordering::Release);
    }
}

fn shape_of(segment: &Segment) -> u64 {
    u64::from(segment.source.0) << 8 | u64::from(segment.width.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::counter::{Hertz, Width};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicU64};

    fn segment(ns: u64) -> Segment {
        let start = Point { ns: Ns(ns), fraction: 7 };
        let slope = Slope::of(Hertz::NANOSECONDS);
        Segment { source: SourceId(3), width: Width::bits(48), count0: 100, start, slope }
    }

    #[test]
    fn holds_what_was_drawn() {
        let line = Line::<AtomicU64>::new(segment(5));
        assert_eq!(line.try_segment(), Some(segment(5)));
        for round in 0..5 {
            let next = Segment { source: SourceId(round), ..segment(u64::from(round) << 40) };
            assert_eq!(line.redraw(|_| next), Some(next));
            assert_eq!(line.try_segment(), Some(next));
        }
        let time = line.try_at(|source| {
            assert_eq!(source, SourceId(4));
            102
        });
        assert_eq!(time, Some(Ns((4 << 40) + 2)));
    }

    /// Goal: while it is replaced nobody reads it, a second writer is turned away, and a writer
    /// that panics leaves the line as it was.
    #[test]
    fn is_closed_while_it_is_redrawn() {
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

    /// Goal: C8: while the line is bent to and fro, no reader sees time go back.
    #[test]
    fn never_goes_back() {
        let rounds = if cfg!(miri) { 50 } else { 100_000 };
        let line = Line::<AtomicU64>::new(segment(5));
        let (counter, done) = (AtomicU64::new(100), AtomicBool::new(false));
        std::thread::scope(|s| {
            let reader = || {
                let mut last = Ns::ZERO;
                while !done.load(Ordering::Relaxed) {
                    if let Some(now) = line.try_at(|_| counter.load(Ordering::SeqCst)) {
                        assert!(now >= last, "{now:?} after {last:?}");
                        last = now;
                    }
                }
            };
            s.spawn(reader);
            s.spawn(reader);
            for round in 0..rounds {
                counter.fetch_add(3, Ordering::SeqCst);
                let slope = [Slope(1 << 31), Slope(1 << 33)][round % 2];
                line.redraw(|old| old.continued(counter.fetch_add(2, Ordering::SeqCst), slope));
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
