//! The types of instants, nanoseconds, windows, ticks and CPU numbers.
//!
//! All arithmetic saturates at [`Ns::NEVER`], the end of the range, and never wraps.

mod instant;
mod ns;
mod tick;
mod window;

pub use instant::Instant;
pub use ns::Ns;
pub use tick::Tick;
pub use window::Window;

/// The number of a CPU, counted from zero. The base with this CPU's timers has that number, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CpuId(pub u16);

impl CpuId {
    /// Returns this CPU's index in a slice of bases.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
