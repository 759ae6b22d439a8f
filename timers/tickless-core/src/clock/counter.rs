//! A counter: it counts up at a steady rate, and any thread can read it at any time.
//!
//! | counter | bits | wraps after | a reading costs |
//! |---|---|---|---|
//! | TSC | 64 | 195 years at 3 GHz | 10-25 ns |
//! | HPET | 32 | 300 s at 14.3 MHz | 500-1500 ns, one CPU at a time |
//! | ACPI PM timer | 24 | 4.7 s at 3.58 MHz | about 1 µs |
//! | PTP clock, any `clock_gettime` | 64, in ns | 584 years | a system call, often a bus as well |
//!
//! The time to a wrap follows from width and frequency. Costs are published orders of magnitude.

use alloc::boxed::Box;
use alloc::sync::Arc;

/// A counter that can be read from any thread.
pub trait Counter: Send + Sync {
    /// Returns the current count. Bits above the lowest [`bits`](Counter::bits) are zero.
    ///
    /// Must not panic. A counter whose device has gone keeps returning its last value.
    fn read(&self) -> u64;

    /// Returns the number of bits of the counter: 2 to 64.
    fn bits(&self) -> u32;
}

macro_rules! by_reference {
    ($($pointer:ty),*) => {$(
        impl<C: Counter + ?Sized> Counter for $pointer {
            #[inline]
            fn read(&self) -> u64 {
                (**self).read()
            }

            #[inline]
            fn bits(&self) -> u32 {
                (**self).bits()
            }
        }
    )*};
}

by_reference!(&C, Box<C>, Arc<C>);
