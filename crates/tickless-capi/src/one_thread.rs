//! What belongs to one thread at a time: how its use by another is noticed, and how a callback gets
//! at it while it is being advanced.

use crate::status::{Outcome, Status, failure};
use crate::timers::{handed_out, none_here};
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// How things of one sort are told from others, and what errors call them.
pub(crate) struct Sort {
    pub(crate) mark: u64,
    pub(crate) name: &'static str,
    /// What to do about the use by another thread.
    pub(crate) remedy: &'static str,
}

/// Something of one thread, as it stands on the heap.
pub(crate) struct OneThread<T: 'static> {
    mark: Cell<u64>,
    owner: AtomicU64,
    value: UnsafeCell<T>,
    /// The value as a callback may use it while it is lent; null outside of one.
    lent: Cell<*mut T>,
}

/// The calling thread, by a number that no other thread has or will have.
fn here() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static HERE: Cell<u64> = const { Cell::new(0) };
    }
    if HERE.get() == 0 {
        HERE.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    HERE.get()
}

/// A handle that C has: a struct with something of one thread in it.
pub(crate) trait Handle: Sized + 'static {
    type Value: 'static;
    const SORT: Sort;

    fn own(&self) -> &OneThread<Self::Value>;

    /// What stands behind a caller's pointer, whoever uses it.
    ///
    /// # Safety
    /// `at` is null or leads to something that is readable for as long as the result is used.
    unsafe fn any_thread<'a>(at: *const Self) -> Outcome<&'a OneThread<Self::Value>> {
        // SAFETY: as promised.
        let own = unsafe { handed_out(at, Self::SORT.name) }?.own();
        if own.mark.get() == Self::SORT.mark { Ok(own) } else { Err(none_here(Self::SORT.name)) }
    }

    /// The same, used by its own thread.
    ///
    /// # Safety
    /// As for [`any_thread`](Handle::any_thread).
    unsafe fn own_thread<'a>(at: *const Self) -> Outcome<&'a OneThread<Self::Value>> {
        // SAFETY: as promised.
        let own = unsafe { Self::any_thread(at) }?;
        if own.owner.load(Ordering::Relaxed) == here() {
            return Ok(own);
        }
        let Sort { name, remedy, .. } = Self::SORT;
        Err(failure(
            Status::WrongThread,
            format_args!("these {name} are another thread's; {remedy}"),
        ))
    }

    /// Frees it, if its own thread does that and it is not lent; null is nothing to do.
    ///
    /// # Safety
    /// `at` is null, or came from `Box::into_raw` and was not freed; nobody uses it later.
    unsafe fn free(at: *mut Self) -> Outcome {
        let Some(place) = NonNull::new(at) else { return Ok(()) };
        // SAFETY: as promised.
        let own = unsafe { Self::own_thread(at) }?;
        own.idle(&Self::SORT)?;
        // The mark goes first, so that a second time is noticed if the memory is not used again at
        // once.
        own.mark.set(0);
        // SAFETY: as promised.
        drop(unsafe { Box::from_raw(place.as_ptr()) });
        Ok(())
    }

    /// Makes the calling thread the one that uses it.
    ///
    /// # Safety
    /// As for [`any_thread`](Handle::any_thread), and nobody uses it meanwhile.
    unsafe fn adopt(at: *const Self) -> Outcome {
        // SAFETY: as promised.
        let own = unsafe { Self::any_thread(at) }?;
        own.idle(&Self::SORT)?;
        own.owner.store(here(), Ordering::Relaxed);
        Ok(())
    }
}

impl<T> OneThread<T> {
    /// The calling thread's.
    pub(crate) fn new(sort: &Sort, value: T) -> OneThread<T> {
        OneThread {
            mark: Cell::new(sort.mark),
            owner: AtomicU64::new(here()),
            value: UnsafeCell::new(value),
            lent: Cell::new(core::ptr::null_mut()),
        }
    }

    /// An error in a callback of its advance.
    pub(crate) fn idle(&self, sort: &Sort) -> Outcome {
        if self.lent.get().is_null() {
            return Ok(());
        }
        let what = format_args!("these {} are being advanced; wait until that is over", sort.name);
        Err(failure(Status::Busy, what))
    }

    /// The value, in a callback that it is lent to as well.
    ///
    /// # Safety
    /// On its own thread; one at a time, and not while C is called.
    #[expect(clippy::mut_from_ref, reason = "as an UnsafeCell: the thread is the lock")]
    pub(crate) unsafe fn value(&self) -> &mut T {
        let lent = self.lent.get();
        let value = if lent.is_null() { self.value.get() } else { lent };
        // SAFETY: what is lent is so until its callback returns; else nobody has it.
        unsafe { &mut *value }
    }

    /// The value, for a call in which callbacks must not get at it.
    ///
    /// # Safety
    /// On its own thread; it is only ever got at in this way.
    pub(crate) unsafe fn alone(&self, sort: &Sort) -> Outcome<Alone<'_, T>> {
        self.idle(sort)?;
        self.lent.set(NonNull::dangling().as_ptr());
        // SAFETY: nobody else has it, and until it is taken back nobody gets it.
        Ok(Alone { value: unsafe { &mut *self.value.get() }, _take_back: TakeBack(&self.lent) })
    }

    /// Lends the value to a callback: until the result is dropped others find it there.
    pub(crate) fn lend(&self, value: &mut T) -> impl Drop + '_ {
        self.lent.set(core::ptr::from_mut(value));
        TakeBack(&self.lent)
    }
}

/// Something that nobody else gets at: calls that come meanwhile find it busy.
pub(crate) struct Alone<'a, T> {
    pub(crate) value: &'a mut T,
    _take_back: TakeBack<'a, T>,
}

/// Takes back what was lent, also when a callback does not return.
struct TakeBack<'a, T>(&'a Cell<*mut T>);

impl<T> Drop for TakeBack<'_, T> {
    fn drop(&mut self) {
        self.0.set(core::ptr::null_mut());
    }
}
