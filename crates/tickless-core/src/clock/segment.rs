//! A straight line from the counts of one counter to time: pure arithmetic, no words.
//!
//! Time is a chain of segments. Each begins at a joint, where the one before it ends to the
//! 2^-32th of a nanosecond, and goes on at a slope of its own, perhaps on another counter. So
//! time never goes back (C8), and however often the segment is renewed nothing is rounded away
//! (C7).

use crate::clock::counter::{Counter, Width};
use crate::clock::slope::{Point, Slope};
use crate::time::Ns;

/// Which of a machine's counters: its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceId(pub u8);

impl SourceId {
    /// Its place in a slice of counters.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// `time = start + (count - count0) * slope`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Whose counts these are.
    pub source: SourceId,
    /// How wide they are.
    pub width: Width,
    /// What the counter stood at when the segment began.
    pub count0: u64,
    /// What time it was then.
    pub start: Point,
    /// How fast time runs.
    pub slope: Slope,
}

impl Segment {
    /// A segment over `counter`, which stands at `count` now, at its nominal frequency.
    pub fn over(source: SourceId, counter: &impl Counter, count: u64, start: Point) -> Segment {
        let slope = Slope::of(counter.frequency());
        Segment { source, width: counter.width(), count0: count, start, slope }
    }

    /// The time at which the counter stood there. A counter that has gone back behind the
    /// joint stands still.
    #[inline]
    pub const fn at(&self, count: u64) -> Point {
        self.slope.ahead(self.start, self.width.elapsed(self.count0, count))
    }

    /// Goes on from where the counter stands now, at another slope.
    #[must_use]
    pub const fn continued(&self, count: u64, slope: Slope) -> Segment {
        Segment { count0: count, start: self.at(count), slope, ..*self }
    }

    /// The same, but not before that time.
    #[must_use]
    pub fn not_before(self, at_least: Ns) -> Segment {
        Segment { start: self.start.max(Point::at(at_least)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::counter::Hertz;

    fn hpet(count: u64) -> Segment {
        let slope = Slope::of(Hertz::new(14_318_180));
        let width = Width::bits(32);
        Segment { source: SourceId(0), width, count0: count, start: Point::default(), slope }
    }

    /// Goal: C7: a 32-bit counter, looked at whenever it has gone all but half its width, keeps
    /// time over a hundred wraps as if it had 64 bits.
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
    fn behind_its_joint_a_counter_stands_still() {
        let segment = hpet(1000);
        assert_eq!([segment.at(1000), segment.at(990)], [Point::default(); 2]);
        assert_eq!(segment.at(1002).ns, Ns(139));
        assert_eq!(segment.continued(990, Slope::ONE).start, Point::default());
        assert_eq!(segment.not_before(Ns(70)).at(1001).ns, Ns(139));
    }
}
