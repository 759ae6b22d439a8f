//! Intrusive nodes: the one place in the core where pointers are followed.

mod list;
mod prefetch;
mod slab;
mod timer;
mod tree;
mod values;

pub(crate) use list::Lists;
pub use list::{WheelLink, WheelRef};
pub(crate) use prefetch::prefetch;
pub(crate) use slab::{Slab, SlotKey};
pub use timer::{Link, Timer, TimerRef};
pub(crate) use tree::{Colour, Side};
pub use tree::{QueueLink, QueueRef};
pub(crate) use values::Values;
