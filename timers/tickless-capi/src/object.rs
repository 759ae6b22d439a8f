//! Objects that C refers to by a pointer, and helpers for the entry points: the functions that C
//! calls.
//!
//! An entry point passes its body, a closure, to one of these helpers: [`on`] to use an object,
//! [`result_of`] or [`optional_result_of`] to also return a value through a pointer, [`create`] and
//! [`destroy`] for an object on the heap. Each helper checks the pointers, and catches a panic of
//! the body.

use crate::annotate;
use crate::status::{Outcome, Status, entry, failure, write_optional, write_result};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

/// An object that C refers to by a pointer.
pub(crate) trait Object {
    /// What a C function borrows for the duration of one call.
    type Lent<'a>;
    /// Whether several threads can use the object, or run its callbacks. Only such objects need
    /// annotations for ThreadSanitizer.
    const IS_SHARED: bool = true;

    /// Returns [`Self::Lent`], or an error if the pointer or the object is invalid. Panics do not
    /// leave it.
    ///
    /// # Safety
    /// `at` is null or points to an object of this type, which no other thread destroys while the
    /// result is used.
    unsafe fn lend<'a>(at: *const Self) -> Outcome<Self::Lent<'a>>;
}

/// Runs the body of an entry point on the object that its argument points to.
///
/// # Safety
/// As for [`Object::lend`].
#[inline]
pub(crate) unsafe fn on<'a, O: Object>(
    object: *const O,
    body: impl FnOnce(O::Lent<'a>) -> Outcome,
) -> Status {
    if O::IS_SHARED {
        annotate::release();
    }
    // Outside of `entry`, so that a valid object costs no register of the caller's: nothing in
    // `lend` panics. SAFETY: the caller promises that `object` is null or points to an object that
    // no other thread destroys during the call.
    match unsafe { O::lend(object) } {
        Ok(lent) => entry(|| body(lent)),
        Err(status) => status,
    }
}

/// Runs the body of an entry point on an object, and writes the body's result to `place`. A null
/// `place` is an error.
///
/// # Safety
/// As for [`Object::lend`], and `place` is null or writable.
#[inline]
pub(crate) unsafe fn result_of<'a, O: Object, T>(
    object: *const O,
    place: *mut T,
    body: impl FnOnce(O::Lent<'a>) -> Outcome<T>,
) -> Status {
    // SAFETY: as for this function.
    unsafe { on(object, |object| write_result(place, body(object)?)) }
}

/// Runs the body of an entry point on an object, and writes the body's result to `place` unless
/// that is null.
///
/// # Safety
/// As for [`result_of`].
#[inline]
pub(crate) unsafe fn optional_result_of<'a, O: Object, T>(
    object: *const O,
    place: *mut T,
    body: impl FnOnce(O::Lent<'a>) -> Outcome<T>,
) -> Status {
    // SAFETY: as for this function.
    unsafe { on(object, |object| body(object).map(|result| write_optional(place, result))) }
}

/// A value with a mark: a constant that shows that a pointer from C points to an object of this
/// type that has not been destroyed.
pub(crate) struct Marked<T> {
    pub(crate) mark: AtomicU64,
    pub(crate) value: T,
}

/// A struct around a [`Marked`] value. C holds a pointer to it, and the library allocates it.
pub(crate) trait Handle: Sized {
    type Value;
    const MARK: u64;
    /// The name of the type in error messages, and the advice how to obtain such an object.
    const NAME: &'static str;

    fn boxed(value: Self::Value) -> *mut Self;

    /// Returns the place of the mark and the value of a handle at this address.
    ///
    /// # Safety
    /// `at` points to readable memory, aligned or not.
    unsafe fn marked(at: *const Self) -> *const Marked<Self::Value>;
}

/// Runs the body of an entry point that creates an object. `place` receives a pointer to the
/// object, or null after an error.
///
/// # Safety
/// `place` is null or writable.
pub(crate) unsafe fn create<H: Handle>(
    place: *mut *mut H,
    make: impl FnOnce() -> Outcome<H::Value>,
) -> Status {
    // SAFETY: the caller promises that `place` is null or writable.
    entry(|| unsafe {
        write_result(place, null_mut())?;
        write_result(place, H::boxed(make()?))
    })
}

/// Returns the value of a handle, or an error if the pointer is null or misaligned, or the mark
/// shows that no handle of this type is there.
///
/// # Safety
/// `at` is null or points to memory that stays readable while the result is used.
// Inlined, because each call on local timers begins with it.
#[inline(always)]
pub(crate) unsafe fn value<'a, H: Handle + 'a>(at: *const H) -> Outcome<&'a H::Value> {
    // SAFETY: the caller promises that `at` is null or points to memory that stays readable while
    // the result is used. A mark is nowhere but in a handle, which is aligned.
    unsafe {
        let marked = H::marked(at);
        if !at.is_null() && (&raw const (*marked).mark).cast::<u64>().read_unaligned() == H::MARK {
            return Ok(&(*marked).value);
        }
    }
    Err(no_handle(at))
}

// "C", because then it cannot unwind, and a caller need not be able to catch a panic.
#[cold]
#[inline(never)]
extern "C" fn no_handle<H: Handle>(at: *const H) -> Status {
    let name = H::NAME;
    if at.is_null() {
        return failure(Status::NullPointer, format_args!("a null pointer is not a {name}"));
    }
    failure(Status::NotInitialised, format_args!("the pointer does not point to a {name}"))
}

/// Runs the body of an entry point that destroys a handle: calls `end`, and frees the handle unless
/// `end` fails. Does nothing if the pointer is null.
///
/// # Safety
/// `at` is null, or came from [`Handle::boxed`] and was not destroyed; no thread uses it
/// afterwards.
pub(crate) unsafe fn destroy<H: Handle>(
    at: *mut H,
    end: impl FnOnce(&H::Value) -> Outcome,
) -> Status {
    entry(|| {
        let Some(place) = NonNull::new(at) else { return Ok(()) };
        // SAFETY: the caller promises that `at` came from `boxed` and was not destroyed.
        end(unsafe { value(at) }?)?;
        annotate::acquire();
        // SAFETY: the caller promises that `at` came from `boxed` and is not used afterwards. The
        // mark is cleared first, so that a second call is detected for as long as the memory is not
        // reused.
        unsafe {
            (*H::marked(at)).mark.store(0, Ordering::Relaxed);
            drop(Box::from_raw(place.as_ptr()));
        }
        Ok(())
    })
}

/// Implements [`Handle`] for structs whose only field is a [`Marked`] value. Also implements
/// [`Object`], which lends what the named function returns for a pointer to the struct.
macro_rules! handles {
    ($(
        $handle:ident($value:ty), $mark:literal, $name:literal, $lend:path => $lent:ty
        $(, shared = $shared:literal)?;
    )*) => {$(
        impl crate::object::Handle for $handle {
            type Value = $value;
            const MARK: u64 = $mark;
            const NAME: &'static str = $name;

            fn boxed(value: $value) -> *mut $handle {
                let mark = core::sync::atomic::AtomicU64::new($mark);
                Box::into_raw(Box::new($handle(crate::object::Marked { mark, value })))
            }

            #[inline(always)]
            unsafe fn marked(at: *const Self) -> *const crate::object::Marked<$value> {
                // SAFETY: as for this function.
                unsafe { &raw const (*at).0 }
            }
        }

        impl crate::object::Object for $handle {
            type Lent<'a> = $lent;
            $(const IS_SHARED: bool = $shared;)?

            #[inline(always)]
            unsafe fn lend<'a>(at: *const Self) -> crate::status::Outcome<Self::Lent<'a>> {
                // SAFETY: the caller promises that `at` is null or points to a handle that no other
                // thread destroys while the result is used.
                unsafe { $lend(at) }
            }
        }
    )*};
}

pub(crate) use handles;
