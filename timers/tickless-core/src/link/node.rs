//! The interface that the nodes of coarse and precise timers share.

use crate::state::{FiresIn, Life};
use core::ptr::NonNull;

/// A node of a coarse ([`WheelLink`](super::WheelLink)) or a precise
/// ([`QueueLink`](super::QueueLink)) timer.
pub trait Link: Sized {
    /// The type of reference through which the wheel or the queue accesses the node.
    type Ref: Copy;
    /// Whether the node belongs to the wheel.
    const COARSE: bool;

    /// Returns where a timer in this state runs its callback if the bases have expiry threads.
    fn fires_in(life: Life) -> FiresIn;

    /// Returns a node that is on no list.
    fn unlinked() -> Self;

    /// Makes a reference to the node.
    ///
    /// # Safety
    /// As for [`CoarseRef::new`](super::CoarseRef::new) and
    /// [`QueueRef::new`](super::QueueRef::new).
    unsafe fn node(link: NonNull<Self>) -> Self::Ref;

    /// Returns the node's address.
    fn address(node: Self::Ref) -> NonNull<Self>;
}
