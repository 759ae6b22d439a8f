//! Timers in memory that somebody else owns.
//!
//! A [`Slot`] is a node like that of `owned`, without an allocation: its place is handed in, and
//! the callback in it is `Copy`, so that it can be called from a copy while its slot is freed.
//! Everything else, arming and the cancel family, is that of the ordinary types.
//!
//! # The end of a slot
//!
//! Nothing waits for the owner's memory to be given up, so the owner asks for it back with
//! `give_back`, which waits. Inside the slot's own callback it does not: the core never follows
//! the address of a timer whose callback has started unless it is to be armed again, and a
//! callback whose slot was given back asks for nothing (X4).

use super::fired::Fired;
use super::frame;
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

/// A timer's place in memory that somebody else owns.
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

/// What a slot calls.
pub(crate) trait Callback: Copy + 'static {
    /// The timer has fired.
    fn call(self, fired: &mut Fired<'_>);
}

/// A slot's task.
struct Embedded<L, F>(PhantomData<(L, F)>);

impl<L: Family<Host>, F: Callback> Embedded<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call);

    /// # Safety
    /// `node` is a live slot of this type.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the callback never changes.
        let callback = unsafe { (*node.cast::<Slot<L, F>>().as_ptr()).callback };
        if frame::slot_may_go(|| callback.call(fired)) {
            fired.stop();
        }
    }
}

/// Writes a slot, and hands out who owns the timer in it.
///
/// # Safety
/// - The slot is the caller's to write, and stays where it is, and is not used otherwise, until
///   `give_back` of what is returned has succeeded.
/// - That is called before the owner is dropped.
/// - The callback may be called from any thread.
pub(crate) unsafe fn own<L: Family<Host>, F: Callback>(
    slot: NonNull<Slot<L, F>>,
    shared: &Handle,
    callback: F,
) -> Owned<L> {
    // SAFETY: the slot is the caller's to write; what the owner asks for, the caller keeps.
    unsafe {
        slot.write(Slot { timer: Timer::new(Embedded::<L, F>::GLUE), callback });
        Owned::around(Pinned::new(slot.cast(), shared.clone()))
    }
}

/// Where a periodic timer keeps what its handle and its callback share.
#[derive(Debug)]
pub(crate) enum OwnOrLent<T: 'static> {
    Own(Arc<T>),
    /// In a slot, for as long as that is not given back.
    Lent(NonNull<T>),
}

// SAFETY: either way it gives out shared references to a `T`, and nothing else.
unsafe impl<T: Send + Sync> Send for OwnOrLent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OwnOrLent<T> {}

impl<T> core::ops::Deref for OwnOrLent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            OwnOrLent::Own(own) => own,
            // SAFETY: whoever lends a place keeps it until the timer is given back, and then only
            // drops that, which does not look here.
            OwnOrLent::Lent(lent) => unsafe { lent.as_ref() },
        }
    }
}
