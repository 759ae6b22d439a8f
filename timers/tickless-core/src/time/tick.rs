//! Ticks: the unit of time of the timer wheel, and exact division of times by it.
//!
//! A wheel counts in ticks of a configurable length. Deadlines are rounded *up* to a tick and the
//! current time is rounded *down*, so that a timer is never early.
//!
//! Source of the division by multiplication: Granlund and Montgomery, "Division by Invariant
//! Integers using Multiplication" (1994), theorem 4.2. For dividends of 63 bits, 292 years in
//! nanoseconds, a multiplier of 64 bits is exact. For later times the code divides.

use super::Ns;
use core::time::Duration;

/// The length of a tick, from 1 µs to 1 s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tick {
    ns: u32,
    /// The factor that replaces a division by `ns`: 2^(64 + shift) / ns, rounded down, plus one.
    multiplier: u64,
    /// The right shift that completes the division by `ns` through multiplication: the length of
    /// `ns - 1` in binary digits, minus one.
    shift: u32,
}

impl Tick {
    /// The shortest tick: 1 µs. The number of ticks of any time then fits in 57 bits.
    pub const MIN: Duration = Duration::from_micros(1);
    /// The longest tick: 1 s.
    pub const MAX: Duration = Duration::from_secs(1);
    /// One millisecond: the tick of a kernel with HZ=1000, and the default of this crate.
    pub const MILLISECOND: Tick = Tick::unchecked(1_000_000);

    /// Returns a tick of this length; `None` if that is not between [`Tick::MIN`] and
    /// [`Tick::MAX`]. For deadlines finer than the shortest tick, use a high-resolution timer.
    pub const fn new(length: Duration) -> Option<Tick> {
        let ns = Ns::from_duration(length).0;
        let is_short = ns < Ns::from_duration(Tick::MIN).0;
        let is_long = ns > Ns::from_duration(Tick::MAX).0;
        if is_short || is_long { None } else { Some(Tick::unchecked(ns)) }
    }

    /// Makes a tick, with the multiplier by which division by its length is a multiplication.
    const fn unchecked(ns: u64) -> Tick {
        // `1 << shift` is half of the least power of two that is not below the length. It is less
        // than the length, so that the multiplier fits in 64 bits.
        let shift = (ns - 1).ilog2();
        let multiplier = ((1 << (64 + shift)) / ns as u128) as u64 + 1;
        Tick { ns: ns as u32, multiplier, shift }
    }

    /// Returns the tick's length.
    pub const fn length(self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// Returns the tick's length in nanoseconds.
    pub(crate) const fn nanos(self) -> u64 {
        self.ns as u64
    }

    /// Returns the last tick that has begun at `time`. Used to round the current time.
    // Hidden from the documentation, as `ceil` and `start` are: only queues and their tests use it.
    #[doc(hidden)]
    #[inline]
    pub const fn floor(self, time: Ns) -> u64 {
        if time.0 > i64::MAX as u64 {
            return self.floor_of_late(time);
        }
        ((time.0 as u128 * self.multiplier as u128) >> 64) as u64 >> self.shift
    }

    #[cold]
    const fn floor_of_late(self, time: Ns) -> u64 {
        time.0 / self.nanos()
    }

    /// Returns the first tick that begins at or after `time`. Used to round deadlines.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn ceil(self, time: Ns) -> u64 {
        // One comparison finds both special cases, late times and 0, because 0 - 1 is a late time.
        let before = time.0.wrapping_sub(1);
        if before > i64::MAX as u64 {
            return self.ceil_of_late(time);
        }
        self.floor(Ns(before)) + 1
    }

    #[cold]
    const fn ceil_of_late(self, time: Ns) -> u64 {
        time.0.div_ceil(self.nanos())
    }

    /// Returns when a tick begins, saturating.
    #[doc(hidden)]
    pub const fn start(self, tick: u64) -> Ns {
        Ns(tick.saturating_mul(self.nanos()))
    }
}

impl Default for Tick {
    fn default() -> Self {
        Tick::MILLISECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the multiplication divides exactly, which W1 (never early) depends on.
    /// Method: check times at and next to multiples of the tick, up to the end of the range.
    #[test]
    fn division_is_exact() {
        for ns in [1_000, 1_001, 4_096, 999_983, 1_000_000, 4_000_000, 10_000_000, 1_000_000_000] {
            let tick = Tick::new(Duration::from_nanos(ns)).unwrap();
            let top = u64::MAX / ns;
            for q in [0, 1, 2, 63, 64, 65, 1 << 20, (1 << 36) + 1, top / 2, top - 1, top] {
                for off in [0, 1, ns / 2, ns - 1] {
                    let time = u64::checked_mul(q, ns).and_then(|start| start.checked_add(off));
                    let Some(time) = time else { continue };
                    assert_eq!(tick.floor(Ns(time)), time / ns, "{time} / {ns}");
                    assert_eq!(tick.ceil(Ns(time)), time.div_ceil(ns), "{time} / {ns}");
                }
            }
            assert_eq!(tick.ceil(Ns::NEVER), u64::MAX.div_ceil(ns));
        }
    }

    #[test]
    fn ticks_out_of_range_are_refused() {
        assert_eq!(Tick::new(Duration::ZERO), None);
        let (short, long) = (Duration::from_nanos(999), Duration::from_secs(2));
        assert_eq!(Tick::new(short), None);
        assert!(Tick::new(Duration::from_secs(1)).is_some());
        assert_eq!(Tick::new(long), None);
        assert_eq!(Tick::new(Duration::MAX), None);
    }
}
