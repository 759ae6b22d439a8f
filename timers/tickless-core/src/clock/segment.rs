//! A straight line from the counts of one counter to time: pure arithmetic, without atomics.
//!
//! Time is a chain of segments. Each begins exactly where the previous one ends, to the 2^-32th of
//! a nanosecond, and continues with a slope of its own. So time never goes back, and rounding
//! errors do not accumulate over many segments.
//!
//! A segment is valid for a number of counts, its *span*. The counter can go on while the system is
//! suspended, so a count after the span says nothing: the reader compares the counter with the
//! system's clock, and continues on a new segment.

use crate::clock::slope::{Point, Slope};

/// Identifies a counter, by a number that the clock chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceId(pub u8);

/// A straight line from counts to time: `time = start + (count - count0) * slope`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The counter.
    pub source: SourceId,
    /// The count at the start of the segment.
    pub count0: u64,
    /// The time at the start of the segment.
    pub start: Point,
    /// Time per count.
    pub slope: Slope,
    /// The number of counts for which the segment is valid.
    pub span: u64,
}

impl Segment {
    /// Returns the time of a count; `None` if the count is before the start or after the span.
    #[inline]
    pub const fn at(&self, count: u64) -> Option<Point> {
        let counts = count.wrapping_sub(self.count0);
        if counts < self.span { Some(self.slope.ahead(self.start, counts)) } else { None }
    }

    /// Returns the time of a count as if the segment had no end.
    pub const fn extended(&self, count: u64) -> Point {
        self.slope.ahead(self.start, count.wrapping_sub(self.count0))
    }

    /// Returns the time that no reading of this segment exceeds.
    pub const fn end(&self) -> Point {
        self.slope.ahead(self.start, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Ns;

    #[test]
    fn a_segment_is_valid_for_its_span() {
        // 14.318180 MHz.
        let slope = Slope(299_965_904_213);
        let start = Point::at(Ns(5));
        let segment = Segment { source: SourceId(0), count0: 1000, start, slope, span: 2 };
        assert_eq!([segment.at(999), segment.at(1002)], [None; 2]);
        assert_eq!(segment.at(1001), Some(segment.extended(1001)));
        assert_eq!((segment.end(), segment.end().ns), (segment.extended(1002), Ns(144)));
    }
}
