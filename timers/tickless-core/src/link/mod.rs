//! Intrusive nodes: the only place in the core where pointers to timers are followed.

mod list;
mod node;
mod prefetch;
mod push_out;
mod timer;
mod tree;
mod values;

pub(crate) use list::Lists;
pub use list::{WheelNode, WheelRef};
pub use node::Link;
pub(crate) use prefetch::prefetch;
pub use prefetch::prefetch_at;
pub use push_out::{CoarseRef, WheelLink};
pub use timer::{NewTimer, Timer, TimerRef};
pub(crate) use tree::{Colour, Side};
pub use tree::{QueueLink, QueueRef};
pub(crate) use values::Values;
