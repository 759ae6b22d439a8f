//! Instants, nanoseconds, windows, ticks and CPU numbers as types of their own.
//!
//! All arithmetic saturates: the far end of the range is [`Ns::NEVER`], and nothing wraps on the
//! way there (W5).

mod instant;
mod ns;
mod tick;
mod window;

pub use instant::Instant;
pub use ns::Ns;
pub use tick::{Tick, TickError};
pub use window::Window;

/// A CPU's number, and with it the number of its base. Dense, from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CpuId(pub u16);

impl CpuId {
    /// This CPU's place in a slice of bases.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
