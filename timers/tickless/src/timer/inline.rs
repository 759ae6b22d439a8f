//! A timer with its callback inside a struct of the program: pinned, without an allocation.
//!
//! The memory belongs to the program, so a drop waits for a running callback, even inside the
//! callback of another timer. Inside the timer's own callback the drop
//! [detaches](Pinned::end_in_place) the callback instead. A drop that would wait forever aborts the
//! process.

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

/// The callback of a timer inside a struct. Closures implement this trait. A program implements it
/// for a type of its own if the field that contains the timer needs a type with a name.
pub trait OnFire: Send + 'static {
    /// Called on a driver thread when the timer has fired.
    fn fired(&mut self, fired: &mut Fired<'_>);
}

impl<F: FnMut(&mut Fired<'_>) + Send + 'static> OnFire for F {
    fn fired(&mut self, fired: &mut Fired<'_>) {
        self(fired);
    }
}

#[repr(C)]
pub(crate) struct Inline<L: Family<Host>, F: OnFire> {
    timer: Timer<Host, L>,
    /// `None` while it runs.
    callback: UnsafeCell<Option<F>>,
    shared: ManuallyDrop<Handle>,
    pinned: PhantomPinned,
}

// SAFETY: the callback is `Send`, and one driver at a time runs it. The core's timer is made for
// many threads, and no other thread has its address before it is pinned.
unsafe impl<L: Family<Host>, F: OnFire> Send for Inline<L, F> {}
// SAFETY: through a shared reference only the core's timer is used, which is made for many threads.
unsafe impl<L: Family<Host>, F: OnFire> Sync for Inline<L, F> {}

impl<L: Family<Host>, F: OnFire> Inline<L, F> {
    const GLUE: Task = &Glue::embedded(Self::call).labelled(core::any::type_name::<F>);

    pub(crate) fn new(shared: Handle, callback: F) -> Inline<L, F> {
        Inline {
            timer: Timer::new(Self::GLUE),
            callback: UnsafeCell::new(Some(callback)),
            shared: ManuallyDrop::new(shared),
            pinned: PhantomPinned,
        }
    }

    /// Returns an owner through which a caller that only borrows the timer can arm and cancel it.
    /// Dropping the owner would end the timer, so it must not be dropped.
    pub(crate) fn owner(self: Pin<&Self>) -> ManuallyDrop<Owned<L>> {
        // SAFETY: `self` is pinned, so it stays in place until its drop, which ends the timer
        // first. The owner made here is never dropped, so neither is the copy of the handle.
        ManuallyDrop::new(unsafe {
            let shared = core::ptr::read(&*self.shared);
            Owned::around(Pinned::new(NonNull::from(self.get_ref()).cast(), shared))
        })
    }

    /// # Safety
    /// `node` points to a live `Inline` of this type, whose callback is not running.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: the caller promises a live timer. While it is live, only this function accesses
        // the callback, and the callback of a timer never overlaps itself (X2).
        let place = unsafe { (*node.cast::<Self>().as_ptr()).callback.get() };
        // SAFETY: as above.
        let mut taken = Taken { place, callback: unsafe { (*place).take() } };
        if let Some(callback) = &mut taken.callback {
            callback.fired(fired);
        }
    }
}

/// Holds a callback while it runs. The drop, also after a panic, moves the callback back into its
/// timer, unless the callback was detached.
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
        // SAFETY: a timer that was armed was pinned, so it has not moved since.
        let ended = unsafe { Pin::new_unchecked(&*self) }.owner().end_in_place();
        if self.shared.is_forked_child() {
            // A driver was perhaps in the callback when the process forked: leak the callback.
            core::mem::forget(self.callback.get_mut().take());
        } else if ended.is_err() {
            never_ends();
        }
        // SAFETY: not used after this.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// Aborts the process: a drop can neither wait for the timer's callback nor return.
#[cold]
#[expect(clippy::print_stderr, reason = "the process ends and should say why")]
fn never_ends() -> ! {
    eprintln!(
        "tickless: a timer inside a struct was dropped by a callback that its own callback waits \
         for; drop it outside of callbacks, or without the lock that its callback takes"
    );
    std::process::abort()
}
