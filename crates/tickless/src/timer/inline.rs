//! A timer with its callback inside a struct of the program: pinned, without an allocation.
//!
//! # Dropping
//!
//! The memory belongs to the program, so a drop must not return while another thread uses it: it
//! waits for a running callback, inside other callbacks, too. Inside its own callback it does not
//! wait: the callback has been moved out of the timer before the call, so it outlives its timer,
//! and [`end_in_place`](Pinned::end_in_place) detaches it, so nothing follows the timer's address.
//! If the wait would never end there is no sound way to go on, and the process is aborted.

use super::fired::Fired;
use super::frame;
use super::glue::{Glue, Host, Task};
use super::owned::Owned;
use super::pinned::Pinned;
use super::shared::Handle;
use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use tickless_core::bases::Family;
use tickless_core::link::Timer;

/// The callback of a timer inside a struct. Closures implement it; a type of the program's own has
/// a name, which a struct's field needs.
pub trait OnFire: Send + 'static {
    /// Called when the timer has fired, on a driver thread, as other callbacks are.
    fn fired(&mut self, fired: &mut Fired<'_>);
}

impl<F: FnMut(&mut Fired<'_>) + Send + 'static> OnFire for F {
    fn fired(&mut self, fired: &mut Fired<'_>) {
        self(fired);
    }
}

/// A timer and its callback, in place.
#[repr(C)]
pub(crate) struct Inline<L: Family<Host>, F: OnFire> {
    timer: Timer<Host, L>,
    /// `None` while it runs.
    callback: UnsafeCell<Option<F>>,
    shared: ManuallyDrop<Handle>,
    pinned: PhantomPinned,
}

// SAFETY: the callback is `Send` and is run by one driver at a time; the rest is the core's, which
// is made for many threads, and no other thread knows the address before it is pinned.
unsafe impl<L: Family<Host>, F: OnFire> Send for Inline<L, F> {}
// SAFETY: all shared use goes through the core.
unsafe impl<L: Family<Host>, F: OnFire> Sync for Inline<L, F> {}

impl<L: Family<Host>, F: OnFire> Inline<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call).labelled(core::any::type_name::<F>);

    /// A timer that is not armed.
    pub(crate) fn new(shared: Handle, callback: F) -> Inline<L, F> {
        Inline {
            timer: Timer::new(Self::GLUE),
            callback: UnsafeCell::new(Some(callback)),
            shared: ManuallyDrop::new(shared),
            pinned: PhantomPinned,
        }
    }

    /// The owner through which the borrower arms and cancels the timer. Must not be dropped.
    pub(crate) fn owner(self: Pin<&Self>) -> ManuallyDrop<Owned<L>> {
        // SAFETY: it is pinned, so it stays where it is until it is dropped, which ends the timer
        // first. The owner made here is not dropped, so neither is the copy of the handle.
        ManuallyDrop::new(unsafe {
            let shared = core::ptr::read(&*self.shared);
            Owned::around(Pinned::new(NonNull::from(self.get_ref()).cast(), shared))
        })
    }

    /// # Safety
    /// `node` is a live timer of this type whose callback does not run.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; only this accesses the callback, and a timer is not run twice at
        // once (X2).
        let place = unsafe { (*node.cast::<Self>().as_ptr()).callback.get() };
        // SAFETY: as above.
        let mut taken = Taken { place, callback: unsafe { (*place).take() } };
        if let Some(callback) = &mut taken.callback {
            callback.fired(fired);
        }
    }
}

/// A callback while it runs. It moves back into its timer, also when it panics, unless it has been
/// detached: then the timer is gone.
struct Taken<F> {
    place: *mut Option<F>,
    callback: Option<F>,
}

impl<F> Drop for Taken<F> {
    fn drop(&mut self) {
        if !frame::is_detached() {
            // SAFETY: a drop of the timer waits until this callback has returned, or detaches it.
            unsafe { *self.place = self.callback.take() };
        }
    }
}

impl<L: Family<Host>, F: OnFire> Drop for Inline<L, F> {
    fn drop(&mut self) {
        // SAFETY: a timer that was armed was pinned, so it is dropped in place.
        let ended = unsafe { Pin::new_unchecked(&*self) }.owner().end_in_place();
        if self.shared.is_forked_child() {
            // A driver may have been in the callback when the process forked: leak it.
            core::mem::forget(self.callback.get_mut().take());
        } else if ended.is_err() {
            never_ends();
        }
        // SAFETY: not used after this.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// Aborts: a callback drops a timer whose own callback waits for it, or for a lock that it holds.
#[cold]
#[expect(clippy::print_stderr, reason = "the process ends and should say why")]
fn never_ends() -> ! {
    eprintln!(
        "tickless: a timer inside a struct was dropped by a callback that its own callback waits \
         for; drop it outside of callbacks, or without the lock that its callback takes"
    );
    std::process::abort()
}
