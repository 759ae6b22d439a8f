//! What a counter is: something that counts up at a steady rate and may be read at any time.
//!
//! Counters differ in how wide they are, how fast they run, what a reading costs and how far
//! they can be trusted. Only the first matters to correctness: a narrow counter wraps, so a
//! difference of two readings is masked (C7), and a difference of more than half the width is
//! taken for a small step back, not for a long way forward (C5).
//!
//! | counter | bits | wraps after | a reading costs |
//! |---|---|---|---|
//! | TSC | 64 | 195 years at 3 GHz | 10-25 ns |
//! | HPET | 32 | 300 s at 14.3 MHz | 500-1500 ns, one CPU at a time |
//! | ACPI PM timer | 24 | 4.7 s at 3.58 MHz | about 1 µs |
//! | PTP clock, any `clock_gettime` | 64, in ns | 584 years | a system call, often a bus as well |
//!
//! Figures: the first and third columns follow from the frequencies; the costs are published
//! ones, by order of magnitude.

use crate::time::Ns;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::num::NonZeroU64;

/// A counter that can be read from any thread.
pub trait Counter: Send + Sync {
    /// What it stands at. Bits above its [width](Counter::width) are zero.
    ///
    /// Must not panic; a counter that has gone away keeps returning its last value, and the
    /// [watchdog](super::watchdog) finds that out.
    fn read(&self) -> u64;

    /// How many bits count.
    fn width(&self) -> Width;

    /// How fast it counts.
    fn frequency(&self) -> Hertz;

    /// How good it is, among those that a machine has.
    fn rating(&self) -> Rating;

    /// What it is called, in reports.
    fn name(&self) -> &str;
}

/// The number of bits of a counter, 2 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Width(u8);

impl Width {
    /// All 64 bits of a word.
    pub const FULL: Width = Width(64);

    /// So many bits; fewer than 2 count as 2 and more than 64 as 64.
    pub const fn bits(bits: u32) -> Width {
        Width(if bits < 2 {
            2
        } else if bits > 64 {
            64
        } else {
            bits as u8
        })
    }

    /// The width that was made of so many bits before: nothing is clamped.
    #[inline]
    pub(crate) const fn restored(bits: u8) -> Width {
        Width(bits)
    }

    /// How many bits these are.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 as u32
    }

    /// Ones where the counter counts.
    #[inline]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0 as u32)
    }

    /// How far the counter has come from one reading to a later one: a masked subtraction, so
    /// one wrap in between does no harm (C7). Zero where `to` lies behind `from` by up to half
    /// the width, which is how a reader that lost a race looks (C5).
    #[inline]
    pub const fn elapsed(self, from: u64, to: u64) -> u64 {
        // At the upper end of the word, where the sign says which half of the width it is.
        let unused = 64 - self.0 as u32;
        let difference = to.wrapping_sub(from).wrapping_shl(unused) as i64;
        if difference < 0 { 0 } else { (difference as u64).wrapping_shr(unused) }
    }

    /// The longest distance that [`elapsed`](Width::elapsed) tells from a step back.
    #[inline]
    pub const fn reach(self) -> u64 {
        self.mask() >> 1
    }
}

/// Counts per second; not zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hertz(NonZeroU64);

impl Hertz {
    /// One count is one nanosecond, as in every clock that counts nanoseconds.
    pub const NANOSECONDS: Hertz = Hertz::new(1_000_000_000);

    /// So many counts per second; zero counts as one.
    pub const fn new(counts_per_s: u64) -> Hertz {
        match NonZeroU64::new(counts_per_s) {
            Some(counts) => Hertz(counts),
            None => Hertz(NonZeroU64::MIN),
        }
    }

    /// Counts per second.
    pub const fn counts_per_s(self) -> u64 {
        self.0.get()
    }
}

/// How good a counter is: the higher the better. The scale is the one that Linux uses.
///
/// Source of the scale: the description of clock source ratings in Linux's documentation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rating(pub u16);

impl Rating {
    /// Only for want of anything else.
    pub const LAST_RESORT: Rating = Rating(1);
    /// Usable, but slow.
    pub const SLOW: Rating = Rating(110);
    /// Correct and good enough.
    pub const GOOD: Rating = Rating(250);
    /// Fast and exact.
    pub const FAST: Rating = Rating(300);
    /// To be used wherever it exists.
    pub const PERFECT: Rating = Rating(400);
}

/// How long a counter may go unread, at most, until time would be lost: half its width.
///
/// A 32-bit counter at 14.318180 MHz: 149.98 s. At 64 bits and 3 GHz: 97 years.
pub fn max_idle(counter: &(impl Counter + ?Sized)) -> Ns {
    let ns = u128::from(counter.width().reach()) * 1_000_000_000
        / u128::from(counter.frequency().counts_per_s());
    Ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

macro_rules! by_reference {
    ($($pointer:ty),*) => {$(
        impl<C: Counter + ?Sized> Counter for $pointer {
            #[inline]
            fn read(&self) -> u64 {
                (**self).read()
            }
            #[inline]
            fn width(&self) -> Width {
                (**self).width()
            }
            fn frequency(&self) -> Hertz {
                (**self).frequency()
            }
            fn rating(&self) -> Rating {
                (**self).rating()
            }
            fn name(&self) -> &str {
                (**self).name()
            }
        }
    )*};
}

by_reference!(&C, Box<C>, Arc<C>);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: C7, C5: subtraction across a wrap is exact; a small step back is no long way ahead.
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
