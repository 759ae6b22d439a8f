//! Values that only one thread at a time may use, such as local timers: use by another thread is
//! detected, and a value that runs callbacks is lent to them, so that they can use it too.

use crate::object::{checked_ref, not_initialised};
use crate::status::{Outcome, Status, entry, failure};
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies one kind of handle: its mark, and its name in error messages.
pub(crate) struct HandleKind {
    pub(crate) mark: u64,
    pub(crate) name: &'static str,
    /// The advice that the error message gives if another thread has used the value.
    pub(crate) remedy: &'static str,
}

/// A value that belongs to one thread, in the memory that a handle points to.
pub(crate) struct OneThread<T: 'static> {
    mark: Cell<u64>,
    owner: AtomicU64,
    value: UnsafeCell<T>,
    /// While the value is lent to a callback, the pointer through which the callback uses it.
    /// Otherwise null.
    lent: Cell<*mut T>,
}

/// Returns the number of the calling thread. Numbers are never reused.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// A struct that C holds a pointer to, with a value that belongs to one thread.
pub(crate) trait Handle: Sized + 'static {
    type Value: 'static;
    const KIND: HandleKind;

    fn own(&self) -> &OneThread<Self::Value>;

    /// Checks a caller's pointer, and accepts a call from any thread.
    ///
    /// # Safety
    /// `at` is null or points to memory that stays readable while the result is used.
    unsafe fn any_thread<'a>(at: *const Self) -> Outcome<&'a OneThread<Self::Value>> {
        // SAFETY: the caller promises that `at` is null or points to memory that stays readable
        // while the result is used.
        let own = unsafe { checked_ref(at, Self::KIND.name) }?.own();
        let HandleKind { mark, name, .. } = Self::KIND;
        if own.mark.get() == mark { Ok(own) } else { Err(not_initialised(name)) }
    }

    /// Checks a caller's pointer, and returns an error unless the calling thread is the owner.
    ///
    /// # Safety
    /// As for [`any_thread`](Handle::any_thread).
    unsafe fn own_thread<'a>(at: *const Self) -> Outcome<&'a OneThread<Self::Value>> {
        // SAFETY: the caller promises that `at` is null or points to memory that stays readable
        // while the result is used.
        let own = unsafe { Self::any_thread(at) }?;
        if own.owner.load(Ordering::Relaxed) == thread_number() {
            return Ok(own);
        }
        let HandleKind { name, remedy, .. } = Self::KIND;
        Err(failure(Status::WrongThread, format!("another thread owns this {name}; {remedy}")))
    }

    /// Frees the handle. Returns an error if another thread owns it or its value is lent to a
    /// callback. Does nothing if the pointer is null.
    ///
    /// # Safety
    /// `at` is null, or came from `Box::into_raw` and was not freed; the caller does not use it
    /// afterwards.
    unsafe fn free(at: *mut Self) -> Status {
        entry(|| {
            let Some(place) = NonNull::new(at) else { return Ok(()) };
            // SAFETY: the caller promises that `at` came from `Box::into_raw` and was not freed.
            let own = unsafe { Self::own_thread(at) }?;
            own.refuse_while_lent(&Self::KIND)?;
            // Clear the mark first, so that a second call is detected for as long as the memory is
            // not reused.
            own.mark.set(0);
            // SAFETY: the caller promises that `at` came from `Box::into_raw` and is not used
            // afterwards.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
            Ok(())
        })
    }

    /// Makes the calling thread the owner.
    ///
    /// # Safety
    /// As for [`any_thread`](Handle::any_thread), and no other thread uses the handle during the
    /// call.
    unsafe fn adopt(at: *const Self) -> Status {
        entry(|| {
            // SAFETY: the caller promises that `at` is null or points to memory that stays readable
            // while the result is used.
            let own = unsafe { Self::any_thread(at) }?;
            own.refuse_while_lent(&Self::KIND)?;
            own.owner.store(thread_number(), Ordering::Relaxed);
            Ok(())
        })
    }
}

/// Implements [`Handle`] and [`Object`](crate::object::Object) for structs whose only field is a
/// [`OneThread`] value. A C function borrows the value mutably, so it must not call a C callback
/// during that borrow.
macro_rules! one_thread_handles {
    ($($handle:ident($value:ty), $mark:literal, $name:literal, $remedy:literal;)*) => {$(
        impl crate::one_thread::Handle for $handle {
            type Value = $value;
            const KIND: crate::one_thread::HandleKind =
                crate::one_thread::HandleKind { mark: $mark, name: $name, remedy: $remedy };

            fn own(&self) -> &crate::one_thread::OneThread<$value> {
                &self.0
            }
        }

        impl crate::object::Object for $handle {
            type Lent<'a> = &'a mut $value;

            unsafe fn lend<'a>(at: *const Self) -> crate::status::Outcome<&'a mut $value> {
                use crate::one_thread::Handle;
                // SAFETY: the caller promises that `at` is null or points to a handle that is not
                // freed while the result is used. An entry point uses one such reference, and calls
                // no C code while it does.
                Ok(unsafe { Self::own_thread(at)?.value() })
            }
        }
    )*};
}

pub(crate) use one_thread_handles;

impl<T> OneThread<T> {
    /// Creates a value that belongs to the calling thread.
    pub(crate) fn new(kind: &HandleKind, value: T) -> OneThread<T> {
        OneThread {
            mark: Cell::new(kind.mark),
            owner: AtomicU64::new(thread_number()),
            value: UnsafeCell::new(value),
            lent: Cell::new(core::ptr::null_mut()),
        }
    }

    /// Returns an error while the value is lent or in exclusive use.
    pub(crate) fn refuse_while_lent(&self, kind: &HandleKind) -> Outcome {
        if self.lent.get().is_null() {
            return Ok(());
        }
        let what = format!("this {} is being advanced; wait until the advance returns", kind.name);
        Err(failure(Status::Busy, what))
    }

    /// Returns the value. While it is lent to a callback, returns the reference that was lent.
    ///
    /// # Safety
    /// The caller is the owner thread, holds one such reference at a time, and calls no C code
    /// while it holds it.
    #[expect(clippy::mut_from_ref, reason = "as in UnsafeCell; only the owner thread calls it")]
    pub(crate) unsafe fn value(&self) -> &mut T {
        let lent = self.lent.get();
        let value = if lent.is_null() { self.value.get() } else { lent };
        // SAFETY: a lent value stays lent until its callback returns. Otherwise there is no other
        // reference: the caller promises to hold one at a time.
        unsafe { &mut *value }
    }

    /// Returns the value for exclusive use: until the result is dropped, calls on the handle, for
    /// example by callbacks, return `TICKLESS_BUSY`.
    ///
    /// # Safety
    /// The caller is the owner thread, and the value is used only through this function.
    pub(crate) unsafe fn exclusive(&self, kind: &HandleKind) -> Outcome<Exclusive<'_, T>> {
        self.refuse_while_lent(kind)?;
        self.lent.set(NonNull::dangling().as_ptr());
        // SAFETY: the value was not lent, and until the guard is dropped every other call is
        // refused.
        Ok(Exclusive { value: unsafe { &mut *self.value.get() }, _loan: EndLoan(&self.lent) })
    }

    /// Lends the value to a callback: until the result is dropped, calls on the handle use `value`.
    pub(crate) fn lend(&self, value: &mut T) -> impl Drop + '_ {
        self.lent.set(core::ptr::from_mut(value));
        EndLoan(&self.lent)
    }
}

/// A value in exclusive use: other calls on its handle return `TICKLESS_BUSY`.
pub(crate) struct Exclusive<'a, T> {
    pub(crate) value: &'a mut T,
    _loan: EndLoan<'a, T>,
}

/// Ends the loan when it is dropped, also while a callback unwinds.
struct EndLoan<'a, T>(&'a Cell<*mut T>);

impl<T> Drop for EndLoan<'_, T> {
    fn drop(&mut self) {
        self.0.set(core::ptr::null_mut());
    }
}
