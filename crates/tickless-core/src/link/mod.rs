//! Intrusive nodes: the one place in the core where pointers are followed.

mod list;
pub use list::{Lists, WheelLink, WheelRef};
