//! Values that only one thread at a time is allowed to use, such as local timers. Use by another
//! thread is detected. A value that runs callbacks is lent to them, to let them use it too.

use crate::object::{Handle, destroy, value};
use crate::status::{Outcome, Status, entry, failure};
use core::cell::Cell;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tickless::slots::Process;
use tickless::thread_word;

/// A value that belongs to one thread, and facts about it that all threads may read.
pub(crate) struct OneThread<T, F = ()> {
    /// The mark of the handle and the number of the owner thread, combined by exclusive or: one
    /// comparison shows that there is such a handle, and that the calling thread owns it.
    pass: AtomicU64,
    mark: u64,
    /// The value, by the pointer through which the owner uses it at the moment. While the value is
    /// lent to a callback, this is the pointer that was lent.
    value: Cell<NonNull<T>>,
    /// Whether the value is lent to a callback.
    is_lent: Cell<bool>,
    process: Process,
    pub(crate) facts: F,
}

/// Stands for the number of a thread that has none yet, and so owns nothing: its address is even,
/// and all numbers are odd.
#[used]
static NO_NUMBER: u64 = 0;

thread_word! {
    /// The number of the calling thread.
    OwnNumber: *const u64 = NO_NUMBER
}

/// Returns the number of the calling thread. Numbers are never reused.
fn thread_number() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    if OwnNumber::get() == &raw const NO_NUMBER {
        OwnNumber::set(core::ptr::without_provenance(NEXT.fetch_add(2, Ordering::Relaxed)));
    }
    OwnNumber::get().addr() as u64
}

/// Returns the error of a handle that the calling thread does not own, or that is none.
// "C", as `no_handle`.
#[cold]
#[inline(never)]
extern "C" fn not_owned<H: Handle>(at: *const H) -> Status {
    // SAFETY: the callers promise that `at` is null or points to readable memory.
    match unsafe { value(at) } {
        Ok(_) => failure(Status::WrongThread, format_args!("another thread owns this {}", H::NAME)),
        Err(status) => status,
    }
}

impl<T, F> OneThread<T, F> {
    /// Makes the contents of a handle of the type `H`.
    pub(crate) fn new<H: Handle<Value = OneThread<T, F>>>(value: T, facts: F) -> OneThread<T, F> {
        OneThread {
            pass: AtomicU64::new(thread_number() ^ H::MARK),
            mark: H::MARK,
            value: Cell::new(NonNull::from(Box::leak(Box::new(value)))),
            is_lent: Cell::new(false),
            process: Process::this(),
            facts,
        }
    }

    fn is_owner(&self) -> bool {
        self.pass.load(Ordering::Relaxed) == OwnNumber::get().addr() as u64 ^ self.mark
    }

    /// Returns an error while the value is lent, or calls are refused.
    fn refuse_while_lent(&self) -> Outcome {
        if !self.is_lent.get() {
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
        // SAFETY: a lent value stays lent until its callback returns. Otherwise there is no other
        // reference: the caller promises to hold one at a time.
        unsafe { self.value.get().as_mut() }
    }

    /// Lends the value to a callback: until the result is dropped, calls on the handle use `value`.
    pub(crate) fn lend(&self, value: &mut T) -> impl Drop + '_ {
        self.is_lent.set(true);
        EndLoan { own: self, before: self.value.replace(NonNull::from(value)) }
    }

    /// Locks the value: until the result is dropped, calls on the handle, for example by
    /// callbacks, return `TICKLESS_BUSY`.
    pub(crate) fn refuse_calls(&self) -> impl Drop + '_ {
        self.is_lent.set(true);
        EndLoan { own: self, before: self.value.get() }
    }
}

/// Returns the contents of a handle, or an error unless the calling thread is the owner.
///
/// # Safety
/// As for [`value`].
#[inline(always)]
unsafe fn own<'a, H, T: 'a, F: 'a>(at: *const H) -> Outcome<&'a OneThread<T, F>>
where
    H: Handle<Value = OneThread<T, F>> + 'a,
{
    // SAFETY: the caller promises that `at` is null or points to memory that stays readable while
    // the result is used. A pass is nowhere but in a handle, which is aligned.
    unsafe {
        if !at.is_null() {
            let own = &raw const (*H::marked(at)).value;
            let pass = OwnNumber::get().addr() as u64 ^ H::MARK;
            if (&raw const (*own).pass).cast::<u64>().read_unaligned() == pass {
                return Ok(&*own);
            }
        }
    }
    Err(not_owned(at))
}

/// Returns the value of a handle, or an error unless the calling thread is the owner.
///
/// # Safety
/// As for [`value`]. The caller holds one such reference at a time, and calls no C code while it
/// holds it.
#[inline(always)]
pub(crate) unsafe fn owned<'a, H, T: 'a, F: 'a>(at: *const H) -> Outcome<&'a mut T>
where
    H: Handle<Value = OneThread<T, F>> + 'a,
{
    // SAFETY: as for this function; this is the owner thread.
    unsafe { own(at).map(|own| own.value()) }
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
    let own = unsafe { own(at) }?;
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
        own.pass.store(thread_number() ^ H::MARK, Ordering::Relaxed);
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
        destroy(at, |contents| {
            if !contents.process.is_this() {
                return Ok(());
            }
            own(at)?.refuse_while_lent()
        })
    }
}

impl<T, F> Drop for OneThread<T, F> {
    fn drop(&mut self) {
        // In the child of a fork, the owner was perhaps changing the value: then it is leaked.
        if self.is_owner() && !self.is_lent.get() {
            // SAFETY: `new` took the value out of a box, and nothing uses it afterwards.
            drop(unsafe { Box::from_raw(self.value.get().as_ptr()) });
        }
        self.pass.store(0, Ordering::Relaxed);
    }
}

/// Ends the loan when it is dropped, also while a callback unwinds.
struct EndLoan<'a, T, F> {
    own: &'a OneThread<T, F>,
    before: NonNull<T>,
}

impl<T, F> Drop for EndLoan<'_, T, F> {
    fn drop(&mut self) {
        self.own.value.set(self.before);
        self.own.is_lent.set(false);
    }
}
