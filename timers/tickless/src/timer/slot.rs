//! Timers in memory that the caller provides.
//!
//! A [`Slot`] holds a timer and its callback, which is `Copy`. The library calls a copy, so the
//! slot can be freed while the callback runs. `give_back` waits for a running callback. Inside that
//! callback it does not wait, but [detaches](Pinned::end_in_place) the callback.

use super::fired::Fired;
use super::glue::{Glue, Host, Task};
use super::owned::Owned;
use super::pinned::Pinned;
use super::shared::Handle;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::Arc;
use tickless_core::bases::Family;
use tickless_core::link::Timer;

/// Memory for one timer and its callback.
#[repr(C)]
#[allow(missing_debug_implementations, reason = "an internal type")]
pub struct Slot<L, F> {
    timer: Timer<Host, L>,
    callback: F,
}

pub(crate) trait Callback: Copy + 'static {
    fn call(self, fired: &mut Fired<'_>);
}

/// Carries the constant that tells the core how to call the callbacks of one type of slot.
struct Embedded<L, F>(PhantomData<(L, F)>);

impl<L: Family<Host>, F: Callback> Embedded<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call);

    /// # Safety
    /// `node` is a live slot of this type.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: the caller promises a live slot, whose callback never changes. The copy is
        // called, because the callback can free the slot.
        let callback = unsafe { (*node.cast::<Slot<L, F>>().as_ptr()).callback };
        callback.call(fired);
    }
}

/// Makes a timer in a slot, and returns its owner.
///
/// # Safety
/// - The caller is allowed to write the slot. The slot stays valid, does not move, and is not used
///   in any other way until `give_back` of the returned owner has succeeded.
/// - `give_back` is called before the owner is dropped.
/// - It is sound to call the callback on any thread.
pub(crate) unsafe fn own<L: Family<Host>, F: Callback>(
    slot: NonNull<Slot<L, F>>,
    shared: &Handle,
    callback: F,
) -> Owned<L> {
    // SAFETY: the caller promises that the slot can be written, and that it stays valid and in
    // place for as long as the owner requires.
    unsafe {
        slot.write(Slot { timer: Timer::new(Embedded::<L, F>::GLUE), callback });
        Owned::around(Pinned::new(slot.cast(), shared.handle()))
    }
}

/// Where a periodic timer keeps the state that its handle and its callback share.
#[derive(Debug)]
pub(crate) enum OwnOrLent<T: 'static> {
    Own(Arc<T>),
    /// The state is in the caller's slot, which is valid until it is given back.
    Lent(NonNull<T>),
}

// SAFETY: both variants only give out `&T`, and `T` is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for OwnOrLent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OwnOrLent<T> {}

impl<T> core::ops::Deref for OwnOrLent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            OwnOrLent::Own(own) => own,
            // SAFETY: the slot is valid until it is given back; after that the timer is only
            // dropped, and its drop does not call this.
            OwnOrLent::Lent(lent) => unsafe { lent.as_ref() },
        }
    }
}
