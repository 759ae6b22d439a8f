//! What the nodes of the two families of timers have in common.

use crate::state::{FiresIn, Life};
use core::ptr::NonNull;

/// A node of one of the two families: coarse ([`WheelLink`](super::WheelLink)) or precise
/// ([`QueueLink`](super::QueueLink)).
pub trait Link: Sized {
    /// How the family's data structure refers to it.
    type Ref: Copy;
    /// Is it the wheel's?
    const COARSE: bool;

    /// Who fires a timer with this life, if expiry is deferred.
    fn fires_in(life: Life) -> FiresIn;

    /// A node on no list.
    fn unlinked() -> Self;

    /// Hands the node to its data structure.
    ///
    /// # Safety
    /// As for [`CoarseRef::new`](super::CoarseRef::new) and
    /// [`QueueRef::new`](super::QueueRef::new).
    unsafe fn node(link: NonNull<Self>) -> Self::Ref;

    /// The node's address.
    fn address(node: Self::Ref) -> NonNull<Self>;
}
