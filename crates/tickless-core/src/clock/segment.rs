//! A straight line from the counts of one counter to time: pure arithmetic, without atomics.
//!
//! Time is a chain of segments. Each begins exactly where the previous one ends, to the 2^-32th of
//! a nanosecond, and continues with a slope of its own, perhaps on another counter. So time never
//! goes back, and rounding errors do not accumulate over many segments.

use crate::clock::counter::{Counter, Width};
use crate::clock::slope::{Point, Slope};
use crate::time::Ns;

/// Identifies a counter of a machine: its index in the list of counters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceId(pub u8);

impl SourceId {
    /// Returns the counter's index in a slice of the machine's counters.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A straight line from counts to time: `time = start + (count - count0) * slope`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The counter.
    pub source: SourceId,
    /// The counter's width.
    pub width: Width,
    /// The count at the start of the segment.
    pub count0: u64,
    /// The time at the start of the segment.
    pub start: Point,
    /// Time per count.
    pub slope: Slope,
}

impl Segment {
    /// Makes a segment over `counter` at its nominal frequency, which begins at `count`.
    pub fn over(source: SourceId, counter: &impl Counter, count: u64, start: Point) -> Segment {
        let slope = Slope::of(counter.hertz());
        Segment { source, width: Width::bits(counter.bits()), count0: count, start, slope }
    }

    /// Returns the time of a count. A count before the start of the segment gives the time of the
    /// start.
    #[inline]
    pub const fn at(&self, count: u64) -> Point {
        self.slope.ahead(self.start, self.width.elapsed(self.count0, count))
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

    fn hpet(count: u64) -> Segment {
        let slope = Slope::of(14_318_180);
        let width = Width::bits(32);
        Segment { source: SourceId(0), width, count0: count, start: Point::default(), slope }
    }

    /// Goal: a 32-bit counter that is read each time it has passed nearly half its width keeps time
    /// over a hundred wraps as exactly as a 64-bit counter does.
    #[test]
    fn a_narrow_counter_keeps_time_over_many_wraps() {
        let mut segment = hpet(0xffff_fff0);
        let mut counts = 0u64;
        for _ in 0..200 {
            counts += Width::bits(32).reach();
            let count = (0xffff_fff0 + counts) & 0xffff_ffff;
            segment = segment.continued(count, segment.slope);
        }
        assert_eq!(segment.start, segment.slope.ahead(Point::default(), counts));
        assert_eq!(segment.start.ns.0 / 1_000_000_000, 29_996, "200 times 149.98 s");
    }

    #[test]
    fn a_count_before_the_start_gives_the_time_of_the_start() {
        let segment = hpet(1000);
        assert_eq!([segment.at(1000), segment.at(990)], [Point::default(); 2]);
        assert_eq!(segment.at(1002).ns, Ns(139));
        assert_eq!(segment.continued(990, Slope::ONE).start, Point::default());
        assert_eq!(segment.not_before(Ns(70)).at(1001).ns, Ns(139));
    }
}
