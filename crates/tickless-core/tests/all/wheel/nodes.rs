//! Bare timers for the tests: a node each and nothing around it.

use std::ptr::NonNull;
use tickless_core::link::{WheelLink, WheelRef};

/// A fixed number of nodes. They must outlive their being pending, which every test sees to by
/// declaring them before its wheel.
pub(crate) struct Nodes(Vec<WheelLink>);

impl Nodes {
    pub(crate) fn new(count: usize) -> Nodes {
        Nodes((0..count).map(|_| WheelLink::new()).collect())
    }

    pub(crate) fn at(&self, index: usize) -> WheelRef {
        // SAFETY: the vector never grows, so its nodes stay where they are even when it is
        // moved; nobody else has access to them; a test uses them from one thread.
        unsafe { WheelRef::new(NonNull::from(&self.0[index])) }
    }

    pub(crate) fn index(&self, node: WheelRef) -> usize {
        let bytes = node.as_ptr().as_ptr() as usize - self.0.as_ptr() as usize;
        bytes / size_of::<WheelLink>()
    }
}
