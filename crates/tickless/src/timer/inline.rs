//! A timer with its callback inside a struct of the program's: pinned, without an allocation.
//!
//! # The end of it
//!
//! Its memory is the program's, so dropping it must not return while anybody uses it: it waits for
//! a running callback, inside another callback too. Inside its own callback it does not: that has
//! been taken out of the timer before it was called, so it may outlive it, and the core never
//! follows the address of a timer whose callback has started unless it is to be armed again, which
//! a callback whose timer is gone does not ask for (X4). If waiting would never end (X6) nothing
//! is left to be done that is sound, and the process is aborted.

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

/// What a timer inside a struct calls. Closures of the usual kind are it; a type of the program's
/// own has a name, which a struct's field needs.
pub trait OnFire: Send + 'static {
    /// The timer has fired. Runs on a driver thread, as other callbacks do.
    fn fired(&mut self, fired: &mut Fired<'_>);
}

impl<F: FnMut(&mut Fired<'_>) + Send + 'static> OnFire for F {
    fn fired(&mut self, fired: &mut Fired<'_>) {
        self(fired);
    }
}

/// A timer and its callback, where they are.
#[repr(C)]
pub(crate) struct Inline<L: Family<Host>, F: OnFire> {
    timer: Timer<Host, L>,
    /// `None` while it is called.
    callback: UnsafeCell<Option<F>>,
    shared: ManuallyDrop<Handle>,
    pinned: PhantomPinned,
}

// SAFETY: the callback is `Send` and is only run by one driver at a time; the rest is the core's,
// which is made for many threads, and nobody knows the address before it is pinned.
unsafe impl<L: Family<Host>, F: OnFire> Send for Inline<L, F> {}
// SAFETY: all shared use goes through the core.
unsafe impl<L: Family<Host>, F: OnFire> Sync for Inline<L, F> {}

impl<L: Family<Host>, F: OnFire> Inline<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call).labelled(core::any::type_name::<F>);

    /// One that is not armed.
    pub(crate) fn new(shared: Handle, callback: F) -> Inline<L, F> {
        Inline {
            timer: Timer::new(Self::GLUE),
            callback: UnsafeCell::new(Some(callback)),
            shared: ManuallyDrop::new(shared),
            pinned: PhantomPinned,
        }
    }

    /// An owner to arm and cancel it by, for as long as it is borrowed; it must not be dropped.
    pub(crate) fn owner(self: Pin<&Self>) -> ManuallyDrop<Owned<L>> {
        // SAFETY: it is pinned, so it stays where it is until it is dropped, which waits until
        // nobody uses it. What is made here is not dropped, so neither is the copy of the handle.
        ManuallyDrop::new(unsafe {
            let shared = core::ptr::read(&*self.shared);
            Owned::around(Pinned::new(NonNull::from(self.get_ref()).cast(), shared))
        })
    }

    /// # Safety
    /// `node` is a live timer of this type whose callback runs nowhere.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the core never runs a timer twice at once (X2), and nobody else
        // touches the callback.
        let place = unsafe { (*node.cast::<Self>().as_ptr()).callback.get() };
        // SAFETY: as above.
        let mut taken = Taken { place, callback: unsafe { (*place).take() } };
        let is_gone = frame::slot_may_go(|| {
            if let Some(callback) = &mut taken.callback {
                callback.fired(fired);
            }
        });
        if is_gone {
            fired.stop();
        }
    }
}

/// A callback while it is called. Goes back to its place, also when it panics, unless the timer
/// is gone.
struct Taken<F> {
    place: *mut Option<F>,
    callback: Option<F>,
}

impl<F> Drop for Taken<F> {
    fn drop(&mut self) {
        if !frame::slot_is_gone() {
            // SAFETY: whoever drops the timer waits for this, or has said that it is gone.
            unsafe { *self.place = self.callback.take() };
        }
    }
}

impl<L: Family<Host>, F: OnFire> Drop for Inline<L, F> {
    fn drop(&mut self) {
        // SAFETY: what was armed was pinned, and what is pinned is dropped in place.
        let ended = unsafe { Pin::new_unchecked(&*self) }.owner().end_in_place();
        if self.shared.is_forked_child() {
            // A driver may have been in the callback: it is left alone, as that of other timers.
            core::mem::forget(self.callback.get_mut().take());
        } else if ended.is_err() {
            never_ends();
        }
        // SAFETY: it is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// A callback drops a timer whose own callback waits for that one, or for a lock that is held here.
#[cold]
#[expect(clippy::print_stderr, reason = "the process ends and should say why")]
fn never_ends() -> ! {
    eprintln!(
        "tickless: a timer inside a struct was dropped by a callback that its own callback waits \
         for; drop it outside of callbacks, or without the lock that its callback takes"
    );
    std::process::abort()
}
