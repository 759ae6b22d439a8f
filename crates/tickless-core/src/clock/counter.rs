//! A counter: it counts up at a steady rate, and any thread may read it at any time.
//!
//! Counters differ in width, frequency, cost of a reading, and reliability. Only the width matters
//! to correctness: a narrow counter wraps, so differences of readings are masked, and a difference
//! of more than half the width is taken for a small step back rather than a long way forward.
//!
//! | counter | bits | wraps after | a reading costs |
//! |---|---|---|---|
//! | TSC | 64 | 195 years at 3 GHz | 10-25 ns |
//! | HPET | 32 | 300 s at 14.3 MHz | 500-1500 ns, one CPU at a time |
//! | ACPI PM timer | 24 | 4.7 s at 3.58 MHz | about 1 µs |
//! | PTP clock, any `clock_gettime` | 64, in ns | 584 years | a system call, often a bus as well |
//!
//! The time to a wrap follows from width and frequency. The costs are published orders of
//! magnitude.

use crate::time::Ns;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A counter that can be read from any thread.
pub trait Counter: Send + Sync {
    /// Returns the current count. Bits above the lowest [`bits`](Counter::bits) are zero.
    ///
    /// Must not panic. A counter whose device has gone keeps returning its last value, and the
    /// [watchdog](super::watchdog) detects that.
    fn read(&self) -> u64;

    /// Returns the number of bits of the counter: 2 to 64.
    fn bits(&self) -> u32;

    /// Returns the counter's frequency in counts per second; 0 is treated as 1.
    fn hertz(&self) -> u64;

    /// Returns the counter's quality, to choose the best counter of a machine. The scale is that of
    /// Linux's clock sources: 1 for a counter of last resort, about 100 for a slow one, 250 for a
    /// good one, 300 for one that is fast and exact, 400 for the best choice wherever it exists.
    fn rating(&self) -> u16;

    /// Returns its name, for reports.
    fn name(&self) -> &str;
}

/// The number of bits of a counter, 2 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Width(u8);

impl Width {
    /// All 64 bits of a word.
    pub const FULL: Width = Width(64);

    /// Makes a width of `bits` bits, limited to 2 to 64.
    pub const fn bits(bits: u32) -> Width {
        Width(if bits < 2 {
            2
        } else if bits > 64 {
            64
        } else {
            bits as u8
        })
    }

    /// Restores a width from the number of bits that [`count`](Width::count) returned. The number
    /// is not checked.
    #[inline]
    pub(crate) const fn restored(bits: u8) -> Width {
        Width(bits)
    }

    /// Returns the number of bits.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 as u32
    }

    /// Returns a mask of the bits that a counter of this width has.
    #[inline]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0 as u32)
    }

    /// Returns the distance from one reading to a later one. The subtraction is masked, so the
    /// counter may wrap once in between. Returns zero if `to` is behind `from` by up to half the
    /// width, as it is for a reader that lost a race.
    #[inline]
    pub const fn elapsed(self, from: u64, to: u64) -> u64 {
        // After a shift to the top of the word, the difference is negative if `to` is behind `from`
        // by up to half the width.
        let unused = 64 - self.0 as u32;
        let difference = to.wrapping_sub(from).wrapping_shl(unused) as i64;
        if difference < 0 { 0 } else { (difference as u64).wrapping_shr(unused) }
    }

    /// Returns the longest distance that [`elapsed`](Width::elapsed) does not take for a step back.
    #[inline]
    pub const fn reach(self) -> u64 {
        self.mask() >> 1
    }
}

/// Returns the longest time between two readings that loses no time: half the time to a wrap.
///
/// A 32-bit counter at 14.318180 MHz: 149.98 s. At 64 bits and 3 GHz: 97 years.
pub fn max_idle(counter: &(impl Counter + ?Sized)) -> Ns {
    let reach = u128::from(Width::bits(counter.bits()).reach());
    let ns = reach * 1_000_000_000 / u128::from(counter.hertz().max(1));
    Ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Implements all functions of [`Counter`] but `read` by those of a counter inside.
#[doc(hidden)]
#[macro_export]
macro_rules! describe_by {
    ($this:ident => $counter:expr) => {
        #[inline]
        fn bits(&self) -> u32 {
            let $this = self;
            $counter.bits()
        }
        fn hertz(&self) -> u64 {
            let $this = self;
            $counter.hertz()
        }
        fn rating(&self) -> u16 {
            let $this = self;
            $counter.rating()
        }
        fn name(&self) -> &str {
            let $this = self;
            $counter.name()
        }
    };
}

pub(crate) use describe_by;

macro_rules! by_reference {
    ($($pointer:ty),*) => {$(
        impl<C: Counter + ?Sized> Counter for $pointer {
            #[inline]
            fn read(&self) -> u64 {
                (**self).read()
            }
            describe_by!(this => (**this));
        }
    )*};
}

by_reference!(&C, Box<C>, Arc<C>);

#[cfg(test)]
pub(crate) use tests::Settable;

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// A counter whose value is set by a test. Reading it panics while the value is zero.
    pub(crate) struct Settable {
        pub(crate) shows: AtomicU64,
        pub(crate) readings: AtomicU64,
        width: Width,
    }

    impl Settable {
        pub(crate) fn new(width: Width) -> Settable {
            Settable { shows: 1.into(), readings: 0.into(), width }
        }
    }

    impl Counter for &Settable {
        fn read(&self) -> u64 {
            self.readings.fetch_add(1, Ordering::Relaxed);
            let shows = self.shows.load(Ordering::Relaxed);
            assert!(shows != 0, "a counter's panic");
            shows
        }

        fn bits(&self) -> u32 {
            self.width.count()
        }

        fn hertz(&self) -> u64 {
            1_000_000_000
        }

        fn rating(&self) -> u16 {
            110
        }

        fn name(&self) -> &str {
            "settable"
        }
    }

    /// Goal: subtraction across a wrap is exact, and a small step back is not a long way forward.
    #[test]
    fn differences_are_masked() {
        for bits in [2, 8, 24, 31, 32, 33, 56, 63, 64] {
            let width = Width::bits(bits);
            assert_eq!(width.mask().count_ones(), bits);
            for from in [0, 1, width.mask() / 2, width.mask() - 1, width.mask()] {
                for distance in [0, 1, width.reach() - 1, width.reach()] {
                    let to = from.wrapping_add(distance) & width.mask();
                    assert_eq!(width.elapsed(from, to), distance, "{bits} {from} {distance}");
                    if distance > 0 {
                        assert_eq!(width.elapsed(to, from), 0, "{bits} {from} {distance}");
                    }
                }
            }
        }
        assert_eq!([Width::bits(0), Width::bits(99)], [Width::bits(2), Width::FULL]);
    }
}
