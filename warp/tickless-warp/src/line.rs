//! The line (a linear function) from the CPU's time-stamp counter to virtual time, and the offsets
//! between the clocks of a program. Pure arithmetic: the caller passes the counter's value.

/// The number of clocks that Linux gives a number to: `CLOCK_REALTIME` (0) to `CLOCK_TAI` (11).
pub(crate) const CLOCKS: usize = 12;

/// Nanoseconds of virtual `CLOCK_MONOTONIC`.
pub(crate) type Ns = u64;

/// Virtual monotonic time as a function of the counter: `base_ns` at `base_tsc`, and from there
/// `mult` / 2^32 nanoseconds for each count. The code in the clock page computes the same function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) base_tsc: u64,
    pub(crate) mult: u64,
    pub(crate) base_ns: Ns,
}

impl Line {
    /// Returns virtual time at the counter's value `tsc`. A value below the line's base, read on a
    /// CPU whose counter is a little behind, gives the time of the base.
    pub(crate) fn at(&self, tsc: u64) -> Ns {
        let scaled = u128::from(tsc.saturating_sub(self.base_tsc)) * u128::from(self.mult);
        self.base_ns.wrapping_add((scaled >> 32) as u64)
    }

    /// Returns the line that continues this one at `tsc` with another slope.
    pub(crate) fn with_slope(&self, tsc: u64, mult: u64) -> Line {
        let base_tsc = tsc.max(self.base_tsc);
        Line { base_tsc, mult, base_ns: self.at(base_tsc) }
    }

    /// Returns the line that is at `ns` at the counter's value `tsc`, with this line's slope.
    pub(crate) fn moved_to(&self, tsc: u64, ns: Ns) -> Line {
        Line { base_tsc: tsc.max(self.base_tsc), mult: self.mult, base_ns: ns }
    }
}

/// How many nanoseconds each clock is ahead of virtual `CLOCK_MONOTONIC`, indexed by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offsets(pub(crate) [i64; CLOCKS]);

/// The numbers of the clocks that flow with virtual time. The clocks of CPU time do not.
pub(crate) const VIRTUAL_CLOCKS: [usize; 9] = [0, 1, 4, 5, 6, 7, 8, 9, 11];
const REALTIME_CLOCKS: [usize; 4] = [0, 5, 8, 11];

impl Offsets {
    /// Returns whether the clock flows with virtual time.
    pub(crate) fn is_virtual(clock: u64) -> bool {
        usize::try_from(clock).is_ok_and(|clock| VIRTUAL_CLOCKS.contains(&clock))
    }

    pub(crate) fn of(&self, clock: u64) -> i64 {
        usize::try_from(clock).ok().and_then(|at| self.0.get(at)).copied().unwrap_or(0)
    }

    /// Sets `CLOCK_REALTIME`, and with it the clocks that keep a fixed distance from it.
    pub(crate) fn set_realtime(&mut self, ahead: i64) {
        let by = ahead.wrapping_sub(self.0[0]);
        for clock in REALTIME_CLOCKS {
            self.0[clock] = self.0[clock].wrapping_add(by);
        }
    }

    /// Converts a clock's time to monotonic time. A time before monotonic zero becomes zero.
    pub(crate) fn to_monotonic(self, clock: u64, ns: u64) -> Ns {
        let monotonic = i128::from(ns) - i128::from(self.of(clock));
        u64::try_from(monotonic.max(0)).unwrap_or(u64::MAX)
    }

    pub(crate) fn of_monotonic(self, clock: u64, ns: Ns) -> u64 {
        ns.wrapping_add_signed(self.of(clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u64 = 1 << 31;

    #[test]
    fn lines_continue_each_other() {
        let line = Line { base_tsc: 100, mult: HALF, base_ns: 1_000 };
        assert_eq!([line.at(100), line.at(102), line.at(7)], [1_000, 1_001, 1_000]);
        // A day of a counter of 4 GHz overflows 64 bits when it is scaled.
        assert_eq!(line.at(100 + 345_600_000_000_000), 1_000 + 172_800_000_000_000);
        let steeper = line.with_slope(120, 2 * HALF);
        assert_eq!([steeper.at(120), steeper.at(121)], [1_010, 1_011]);
        assert_eq!(steeper.moved_to(130, 50_000).at(131), 50_001);
        assert_eq!(line.with_slope(50, HALF), line, "the counter never goes back");
    }
}
