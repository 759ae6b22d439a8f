//! Intrusive nodes: the one place in the core where pointers are followed.

mod list;
mod slab;
mod timer;
mod tree;

pub(crate) use list::Lists;
pub use list::{WheelLink, WheelRef};
pub(crate) use slab::{Slab, SlotKey};
pub use timer::{Link, Timer, TimerRef};
pub(crate) use tree::{Colour, Side};
pub use tree::{QueueLink, QueueRef};
