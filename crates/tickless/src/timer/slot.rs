//! Timers in memory that the caller provides.
//!
//! A [`Slot`] is a node like those of [`owned`](super::owned), but not allocated here. Its callback
//! is `Copy` and is called from a copy, so the slot may be freed while the callback runs.
//!
//! The caller frees the memory after `give_back` has succeeded. That waits for a running callback,
//! or, inside it, [detaches](Pinned::end_in_place) it.

use super::fired::Fired;
use super::glue::{Glue, Host, Task};
use super::owned::Owned;
use super::pinned::Pinned;
use super::shared::Handle;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::Arc;
use tickless_core::bases::Family;
use tickless_core::link::Timer;

/// Memory for one timer and its callback.
#[repr(C)]
pub struct Slot<L, F> {
    timer: Timer<Host, L>,
    callback: F,
}

impl<L, F> fmt::Debug for Slot<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// The callback of a timer in a slot.
pub(crate) trait Callback: Copy + 'static {
    /// Called when the timer has fired.
    fn call(self, fired: &mut Fired<'_>);
}

/// Holds the glue of a type of slot.
struct Embedded<L, F>(PhantomData<(L, F)>);

impl<L: Family<Host>, F: Callback> Embedded<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call);

    /// # Safety
    /// `node` is a live slot of this type.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the callback never changes. It is called from this copy.
        let callback = unsafe { (*node.cast::<Slot<L, F>>().as_ptr()).callback };
        callback.call(fired);
    }
}

/// Makes a timer in a slot, and returns its owner.
///
/// # Safety
/// - The caller may write the slot. It stays valid, does not move, and is not used otherwise until
///   `give_back` of the returned owner has succeeded.
/// - `give_back` is called before the owner is dropped.
/// - The callback may be called from any thread.
pub(crate) unsafe fn own<L: Family<Host>, F: Callback>(
    slot: NonNull<Slot<L, F>>,
    shared: &Handle,
    callback: F,
) -> Owned<L> {
    // SAFETY: the caller may write the slot, and keeps it as the owner requires.
    unsafe {
        slot.write(Slot { timer: Timer::new(Embedded::<L, F>::GLUE), callback });
        Owned::around(Pinned::new(slot.cast(), shared.handle()))
    }
}

/// Where a periodic timer keeps the state that its handle and its callback share.
#[derive(Debug)]
pub(crate) enum OwnOrLent<T: 'static> {
    Own(Arc<T>),
    /// In a slot, until that is given back.
    Lent(NonNull<T>),
}

// SAFETY: both give access through shared references to a `T` only.
unsafe impl<T: Send + Sync> Send for OwnOrLent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OwnOrLent<T> {}

impl<T> core::ops::Deref for OwnOrLent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            OwnOrLent::Own(own) => own,
            // SAFETY: the slot is valid until it is given back; after that the timer is only
            // dropped, which does not come here.
            OwnOrLent::Lent(lent) => unsafe { lent.as_ref() },
        }
    }
}
