//! A straight line from the counts of one counter to time: pure arithmetic, without atomics.
//!
//! Time is a chain of segments. Each begins exactly where the previous one ends, to the 2^-32th of
//! a nanosecond, and continues with a slope of its own, perhaps on another counter. So time never
//! goes back, and rounding errors do not accumulate over many segments.

use crate::clock::slope::{Point, Slope};
use crate::time::Ns;

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
}

impl Segment {
    /// Returns the time of a count. A count before the segment's start gives the time of the start.
    #[inline]
    pub const fn at(&self, count: u64) -> Point {
        let counts = count.wrapping_sub(self.count0) as i64;
        self.slope.ahead(self.start, if counts < 0 { 0 } else { counts as u64 })
    }

    /// Returns a segment that continues this one from `count` with another slope.
    #[must_use]
    pub const fn continued(&self, count: u64, slope: Slope) -> Segment {
        Segment { count0: count, start: self.at(count), slope, ..*self }
    }

    /// Returns this segment, moved ahead in time if it would start before `at_least`.
    #[must_use]
    pub fn not_before(self, at_least: Ns) -> Segment {
        Segment { start: self.start.max(Point::at(at_least)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_before_the_start_gives_the_time_of_the_start() {
        // 14.318180 MHz.
        let slope = Slope(299_965_904_213);
        let start = Point::default();
        let segment = Segment { source: SourceId(0), count0: 1000, start, slope };
        assert_eq!([segment.at(1000), segment.at(990)], [Point::default(); 2]);
        assert_eq!(segment.at(1002).ns, Ns(139));
        assert_eq!(segment.continued(990, Slope::ONE).start, Point::default());
        assert_eq!(segment.not_before(Ns(70)).at(1001).ns, Ns(139));
    }
}
