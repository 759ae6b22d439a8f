//! Annotations for ThreadSanitizer.
//!
//! The library is not instrumented, so in a program built with `-fsanitize=thread` the sanitizer
//! does not see that an arming happens before its callback, and a callback before the return of a
//! cancel that waits for it. It would report a race between a write before an arming and a read in
//! the callback. So the library calls the sanitizer's functions, if the process has them.
//!
//! All timers share one annotated address, as they would if they shared one lock: the sanitizer
//! reports no false race, and misses some races between a callback and code that called the library
//! before or after it.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

static RELEASE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ACQUIRE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Finds the sanitizer's functions. Called before the first timer is made. Does nothing in builds
/// in which the library itself is instrumented for the sanitizer, or interpreted by Miri.
pub(crate) fn find() {
    if cfg!(any(miri, tickless_tsan)) {
        return;
    }
    for (place, name) in [(&RELEASE, c"__tsan_release"), (&ACQUIRE, c"__tsan_acquire")] {
        // SAFETY: null stands for all libraries of the process, and the name ends with a zero.
        place.store(unsafe { dlsym(null_mut(), name.as_ptr()) }, Ordering::Relaxed);
    }
}

/// Returns whether the process has the sanitizer's functions.
pub(crate) fn is_wanted() -> bool {
    !RELEASE.load(Ordering::Relaxed).is_null()
}

/// Orders what the thread has done so far before what follows a later [`acquire`] of any thread.
#[inline]
pub(crate) fn release() {
    call(&RELEASE);
}

/// Orders what came before each earlier [`release`] before what the thread does next.
#[inline]
pub(crate) fn acquire() {
    call(&ACQUIRE);
}

#[inline]
fn call(place: &AtomicPtr<c_void>) {
    let found = place.load(Ordering::Relaxed);
    if !found.is_null() {
        // SAFETY: the sanitizer's functions have this type. They use the address as a name.
        unsafe {
            let annotate: extern "C" fn(*mut c_void) = core::mem::transmute(found);
            annotate((&raw const RELEASE).cast_mut().cast());
        }
    }
}
