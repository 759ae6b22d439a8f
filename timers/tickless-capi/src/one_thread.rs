//! Values that only one thread at a time is allowed to use, such as local timers. Use by another
//! thread is detected. A value that runs callbacks is lent to them, to let them use it too.

use crate::object::{Handle, destroy, value};
use crate::status::{Outcome, Status, entry, failure};
use core::cell::{Cell, UnsafeCell};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless::slots::Process;

/// A value that belongs to one thread, and facts about it that all threads may read.
pub(crate) struct OneThread<T, F = ()> {
    process: Process,
    owner: AtomicU64,
    value: ManuallyDrop<UnsafeCell<T>>,
    /// While the value is lent to a callback, the pointer through which the callback uses it.
    /// Otherwise null.
    lent: Cell<*mut T>,
    pub(crate) facts: F,
}

thread_local! {
    /// The number of the thread; 0 if it has none yet, and so owns nothing.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of the calling thread. Numbers are never reused.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

#[cold]
#[inline(never)]
fn not_owner(name: &str) -> Status {
    failure(Status::WrongThread, format_args!("another thread owns this {name}"))
}

impl<T, F> OneThread<T, F> {
    pub(crate) fn new(value: T, facts: F) -> OneThread<T, F> {
        OneThread {
            process: Process::this(),
            owner: AtomicU64::new(thread_number()),
            value: ManuallyDrop::new(UnsafeCell::new(value)),
            lent: Cell::new(core::ptr::null_mut()),
            facts,
        }
    }

    fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == NUMBER.get()
    }

    /// Fails if another thread than the owner calls.
    #[inline]
    fn check_owner(&self, name: &str) -> Outcome {
        if self.is_owner() { Ok(()) } else { Err(not_owner(name)) }
    }

    /// Returns an error while the value is lent, or calls are refused.
    fn refuse_while_lent(&self) -> Outcome {
        if self.lent.get().is_null() {
            return Ok(());
        }
        let what = "a callback cannot do this while its timers are being advanced; wait until the \
                    advance returns";
        Err(failure(Status::Busy, what))
    }

    /// Returns the value. While it is lent to a callback, returns the reference that was lent.
    ///
    /// # Safety
    /// The caller is the owner thread, holds one such reference at a time, and calls no C code
    /// while it holds it, unless it lends the value to that code.
    #[expect(clippy::mut_from_ref, reason = "as in UnsafeCell; only the owner thread calls it")]
    #[inline]
    unsafe fn value(&self) -> &mut T {
        let lent = self.lent.get();
        let value = if lent.is_null() { self.value.get() } else { lent };
        // SAFETY: a lent value stays lent until its callback returns. Otherwise there is no other
        // reference: the caller promises to hold one at a time.
        unsafe { &mut *value }
    }

    /// Lends the value to a callback: until the result is dropped, calls on the handle use `value`.
    pub(crate) fn lend(&self, value: &mut T) -> impl Drop + '_ {
        self.lent.set(core::ptr::from_mut(value));
        EndLoan(&self.lent)
    }

    /// Locks the value: until the result is dropped, calls on the handle, for example by
    /// callbacks, return `TICKLESS_BUSY`.
    pub(crate) fn refuse_calls(&self) -> impl Drop + '_ {
        self.lent.set(NonNull::dangling().as_ptr());
        EndLoan(&self.lent)
    }
}

/// Returns the value of a handle, or an error unless the calling thread is the owner.
///
/// # Safety
/// As for [`value`]. The caller holds one such reference at a time, and calls no C code while it
/// holds it.
#[inline]
pub(crate) unsafe fn owned<'a, H, T: 'a, F: 'a>(at: *const H) -> Outcome<&'a mut T>
where
    H: Handle<Value = OneThread<T, F>> + 'a,
{
    // SAFETY: as for this function.
    let own = unsafe { value(at) }?;
    own.check_owner(H::NAME)?;
    // SAFETY: this is the owner thread; the caller promises the rest.
    Ok(unsafe { own.value() })
}

/// Returns the value of a handle and the place from which it can be lent to callbacks. Returns an
/// error unless the calling thread is the owner, and while the value is lent.
///
/// # Safety
/// As for [`value`]. While a callback runs, the caller does not use the value, and has lent it.
pub(crate) unsafe fn lendable<'a, H, T: 'a, F: 'a>(
    at: *const H,
) -> Outcome<(&'a OneThread<T, F>, &'a mut T)>
where
    H: Handle<Value = OneThread<T, F>> + 'a,
{
    // SAFETY: as for this function.
    let own = unsafe { value(at) }?;
    own.check_owner(H::NAME)?;
    own.refuse_while_lent()?;
    // SAFETY: this is the owner thread, and the value is not lent; the caller promises the rest.
    Ok((own, unsafe { own.value() }))
}

/// Makes the calling thread the owner of a handle. Returns an error while its value is lent.
///
/// # Safety
/// As for [`value`], and no other thread uses the handle during the call.
pub(crate) unsafe fn adopt<H: Handle<Value = OneThread<T, F>>, T, F>(at: *const H) -> Status {
    entry(|| {
        // SAFETY: as for this function.
        let own = unsafe { value(at) }?;
        own.refuse_while_lent()?;
        own.owner.store(thread_number(), Ordering::Relaxed);
        Ok(())
    })
}

/// Frees a handle. Returns an error if another thread owns it or its value is lent to a callback,
/// except in the child of a fork. Does nothing if the pointer is null.
///
/// # Safety
/// As for [`destroy`].
pub(crate) unsafe fn free<H: Handle<Value = OneThread<T, F>>, T, F>(at: *mut H) -> Status {
    // SAFETY: as for this function.
    unsafe {
        destroy(at, |own| {
            if !own.process.is_this() {
                return Ok(());
            }
            own.check_owner(H::NAME)?;
            own.refuse_while_lent()
        })
    }
}

impl<T, F> Drop for OneThread<T, F> {
    fn drop(&mut self) {
        // In the child of a fork, the owner was perhaps changing the value: then it is leaked.
        if self.is_owner() && self.lent.get().is_null() {
            // SAFETY: nothing uses the value afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Ends the loan when it is dropped, also while a callback unwinds.
struct EndLoan<'a, T>(&'a Cell<*mut T>);

impl<T> Drop for EndLoan<'_, T> {
    fn drop(&mut self) {
        self.0.set(core::ptr::null_mut());
    }
}
