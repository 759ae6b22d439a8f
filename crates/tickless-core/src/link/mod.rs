//! Intrusive nodes: what a timer carries to be queued. The crate's unsafe code lives here.

mod tree;
pub(crate) use tree::{Colour, Side};
pub use tree::{QueueLink, QueueRef};
