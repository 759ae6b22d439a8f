//! Objects that C refers to by a pointer, and the shapes of the calls on them.
//!
//! An entry point is one of these shapes with a body of its own: a call on an object ([`on`]), a
//! call that returns a value through a pointer ([`result_of`], [`optional_result_of`]), a creation
//! ([`create`]). Each checks the pointers, and runs the body inside the panic boundary.

use crate::status::{Outcome, Status, entry, failure, write_optional, write_result};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

/// An object that C refers to by a pointer.
pub(crate) trait Object {
    /// What a C function borrows for the duration of one call.
    type Lent<'a>;

    /// Returns [`Self::Lent`], or an error if the pointer or the object is invalid.
    ///
    /// # Safety
    /// `at` is null or points to an object of this type, which no other thread destroys while the
    /// result is used.
    unsafe fn lend<'a>(at: *const Self) -> Outcome<Self::Lent<'a>>;
}

/// Runs the body of an entry point on an object.
///
/// # Safety
/// As for [`Object::lend`].
#[inline]
pub(crate) unsafe fn on<'a, O: Object>(
    object: *const O,
    body: impl FnOnce(O::Lent<'a>) -> Outcome,
) -> Status {
    // SAFETY: the caller promises that `object` is null or points to an object that no other thread
    // destroys during the call.
    entry(|| body(unsafe { O::lend(object) }?))
}

/// Runs the body of an entry point on an object, and writes its result. A null `place` is an error.
///
/// # Safety
/// As for [`Object::lend`], and `place` is null or writable.
#[inline]
pub(crate) unsafe fn result_of<'a, O: Object, T>(
    object: *const O,
    place: *mut T,
    body: impl FnOnce(O::Lent<'a>) -> Outcome<T>,
) -> Status {
    // SAFETY: the caller promises that `object` is null or points to an object that no other thread
    // destroys during the call, and that `place` is null or writable.
    unsafe { on(object, |object| write_result(place, body(object)?)) }
}

/// Runs the body of an entry point on an object, and writes its result unless `place` is null.
///
/// # Safety
/// As for [`result_of`].
#[inline]
pub(crate) unsafe fn optional_result_of<'a, O: Object, T>(
    object: *const O,
    place: *mut T,
    body: impl FnOnce(O::Lent<'a>) -> Outcome<T>,
) -> Status {
    // SAFETY: the caller promises that `object` is null or points to an object that no other thread
    // destroys during the call, and that `place` is null or writable.
    unsafe {
        on(object, |object| {
            write_optional(place, body(object)?);
            Ok(())
        })
    }
}

/// Runs an entry point that creates an object. `place` receives a pointer to it, or null after an
/// error.
///
/// # Safety
/// `place` is null or writable.
pub(crate) unsafe fn create<T>(place: *mut *mut T, make: impl FnOnce() -> Outcome<T>) -> Status {
    // SAFETY: the caller promises that `place` is null or writable.
    entry(|| unsafe {
        write_result(place, null_mut())?;
        write_result(place, Box::into_raw(Box::new(make()?)))
    })
}

/// A value that all threads may use, with a mark that identifies it.
pub(crate) struct Marked<T> {
    mark: AtomicU64,
    value: T,
}

/// A struct around a [`Marked`] value, which C holds a pointer to.
pub(crate) trait Handle: Sized {
    type Value;
    const MARK: u64;
    /// Its name in error messages, and how to obtain one.
    const NAME: &'static str;

    fn marked(&self) -> &Marked<Self::Value>;

    /// Returns a value with the mark of this type.
    fn mark(value: Self::Value) -> Marked<Self::Value> {
        Marked { mark: AtomicU64::new(Self::MARK), value }
    }
}

/// Returns the value of a handle, or an error unless the mark shows a live one.
///
/// # Safety
/// `at` is null or points to memory that stays readable while the result is used.
pub(crate) unsafe fn value<'a, H: Handle + 'a>(at: *const H) -> Outcome<&'a H::Value> {
    // SAFETY: the caller promises that `at` is null or points to memory that stays readable while
    // the result is used.
    let Marked { mark, value } = unsafe { checked_ref(at, H::NAME) }?.marked();
    if mark.load(Ordering::Relaxed) == H::MARK { Ok(value) } else { Err(not_initialised(H::NAME)) }
}

/// Runs an entry point that destroys a handle, after `end` has ended its use. Does nothing if the
/// pointer is null.
///
/// # Safety
/// `at` is null, or came from [`create`] and was not destroyed; no thread uses it afterwards.
pub(crate) unsafe fn destroy<H: Handle>(
    at: *mut H,
    end: impl FnOnce(&H::Value) -> Outcome,
) -> Status {
    entry(|| {
        let Some(place) = NonNull::new(at) else { return Ok(()) };
        // SAFETY: the caller promises that `at` came from `create` and was not destroyed.
        end(unsafe { value(at) }?)?;
        // SAFETY: the caller promises that `at` came from `create` and is not used afterwards. The
        // mark is cleared first, so that a second call is detected for as long as the memory is not
        // reused.
        unsafe {
            place.as_ref().marked().mark.store(0, Ordering::Relaxed);
            drop(Box::from_raw(place.as_ptr()));
        }
        Ok(())
    })
}

/// Implements [`Handle`] and [`Object`] for structs of one [`Marked`] field.
macro_rules! handles {
    ($($handle:ident($value:ty), $mark:literal, $name:literal;)*) => {$(
        impl crate::object::Handle for $handle {
            type Value = $value;
            const MARK: u64 = $mark;
            const NAME: &'static str = $name;

            fn marked(&self) -> &crate::object::Marked<$value> {
                &self.0
            }
        }

        impl crate::object::Object for $handle {
            type Lent<'a> = &'a $value;

            unsafe fn lend<'a>(at: *const Self) -> crate::status::Outcome<&'a $value> {
                // SAFETY: the caller promises that `at` is null or points to a handle that no other
                // thread destroys while the result is used.
                unsafe { crate::object::value(at) }
            }
        }
    )*};
}

pub(crate) use handles;

/// Returns the object that a caller's pointer points to. Returns an error for a null or misaligned
/// pointer; the caller checks the mark.
///
/// # Safety
/// As for [`value`].
pub(crate) unsafe fn checked_ref<'a, T>(at: *const T, name: &str) -> Outcome<&'a T> {
    if !at.is_aligned() {
        return Err(not_initialised(name));
    }
    // SAFETY: the caller promises that `at` is null or points to memory that stays readable while
    // the result is used.
    match unsafe { at.as_ref() } {
        Some(known) => Ok(known),
        None => Err(failure(Status::NullPointer, format_args!("a null pointer is not a {name}"))),
    }
}

#[cold]
pub(crate) fn not_initialised(name: &str) -> Status {
    failure(Status::NotInitialised, format_args!("the pointer does not point to a {name}"))
}
