//! The status that calls return, the text of the last error, and the panic boundary.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickless::CancelError;

/// The result of a call. Every value but `TICKLESS_OK` is an error, and after an error nothing has
/// changed unless the value's description states otherwise; `tickless_error_text` returns a
/// sentence about the cause and the remedy.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A pointer that must not be null is null.
    NullPointer = 1,
    /// A pointer to storage is not aligned as its type requires.
    Misaligned = 2,
    /// The size of a struct, a flag, or a choice is unknown to this version of the library.
    Unsupported = 3,
    /// A number is outside its range, for example a negative duration.
    OutOfRange = 4,
    /// The storage was never initialised, has been destroyed, or was copied from elsewhere.
    NotInitialised = 5,
    /// The storage already holds a timer. Destroy it first.
    AlreadyInitialised = 6,
    /// The object is still in use: a set of timers has timers, or local timers are being advanced.
    Busy = 7,
    /// The timer has been shut down, or this process is a forked child and the timer belongs to its
    /// parent.
    Shut = 8,
    /// The set of timers has no base with this number.
    NoSuchBase = 9,
    /// The call would wait for a callback that waits for the caller. If a cancel returns this, it
    /// has cancelled the timer, but the timer's callback is perhaps still running.
    WouldDeadlock = 10,
    /// `cancel_single_shot` found that the timer had been armed again while its callback ran. The
    /// timer has been cancelled, and its callback has returned.
    NotSingleShot = 11,
    /// A thread used an object that belongs to another thread.
    WrongThread = 12,
    /// The timer of this key has been removed, or the key belongs to another table.
    NoSuchTimer = 13,
    /// A table has reached its maximum number of entries.
    Full = 14,
    /// The operating system refused to create a thread.
    NoThread = 15,
    /// The program was compiled with the header of another version.
    AbiMismatch = 16,
    /// A defect in the library: it panicked, and the panic was caught before it reached C. The
    /// object that the call used is in an unknown state.
    Internal = 17,
    /// The operating system refused to create a descriptor for a loop.
    NoDescriptor = 18,
    /// Too few permits are left in this period, or other threads wait for them.
    Empty = 19,
    /// The timeout of the call expired.
    TimedOut = 20,
}

/// The result of an entry point's body. [`failure`] has already stored the text of an error.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

const TEXT_MAX: usize = 256;

/// The text of a thread's last error, with a zero byte at its end. It has no destructor and needs
/// no allocation, so it is valid for as long as its thread runs.
#[repr(C)]
struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

thread_local! {
    static LAST: RefCell<Text> = const { RefCell::new(Text { bytes: [0; TEXT_MAX], len: 0 }) };
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_MAX - 1 - self.len;
        let cut = (0..=room.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let part = &text.as_bytes()[..cut.unwrap_or(0)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        self.bytes[self.len] = 0;
        Ok(())
    }
}

/// Stores the text of an error for the calling thread, and returns its status.
#[cold]
pub(crate) fn failure(status: Status, what: impl fmt::Display) -> Status {
    LAST.with_borrow_mut(|text| {
        text.len = 0;
        // If formatting fails, the text ends where it failed.
        let _ = write!(text, "{what}");
    });
    status
}

#[cold]
pub(crate) fn null_callback() -> Status {
    failure(Status::NullPointer, "the callback is null")
}

/// The panic boundary: every entry point runs its body in here.
#[inline]
pub(crate) fn entry(body: impl FnOnce() -> Outcome) -> Status {
    match caught(body) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) | Err(status) => status,
    }
}

/// Returns what `body` returns, or the status for its panic.
#[inline(always)]
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(panicked)
}

#[cold]
#[inline(never)]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> Status {
    // Dropping the payload might panic again.
    std::mem::forget(payload);
    failure(Status::Internal, "the library panicked; please report what it printed")
}

/// Writes a result through a caller's pointer, unless the pointer is null.
///
/// # Safety
/// `place` is null or writable.
pub(crate) unsafe fn write_optional<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises that `place` is null or writable, and it is not null here.
        unsafe { place.write_unaligned(value) };
    }
}

/// Writes a result through a caller's pointer. A null pointer is an error.
///
/// # Safety
/// `place` is null or writable.
pub(crate) unsafe fn write_result<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(failure(Status::NullPointer, "the pointer for the result is null"));
    }
    // SAFETY: the caller promises that `place` is null or writable.
    unsafe { write_optional(place, value) };
    Ok(())
}

/// Returns a sentence about the last error of the calling thread, in English and UTF-8: its cause
/// and what to do. Returns an empty text if no call has failed. The library owns the text, which is
/// valid until this thread's next call that fails. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_error_text() -> *const c_char {
    LAST.with(|text| text.as_ptr()).cast::<Text>().cast_const().cast()
}

/// Returns the name of a status, for example "TICKLESS_BUSY", or "unknown" for any other number.
/// Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_status_name(status: i32) -> *const c_char {
    let name: &CStr = match status {
        0 => c"TICKLESS_OK",
        1 => c"TICKLESS_NULL_POINTER",
        2 => c"TICKLESS_MISALIGNED",
        3 => c"TICKLESS_UNSUPPORTED",
        4 => c"TICKLESS_OUT_OF_RANGE",
        5 => c"TICKLESS_NOT_INITIALISED",
        6 => c"TICKLESS_ALREADY_INITIALISED",
        7 => c"TICKLESS_BUSY",
        8 => c"TICKLESS_SHUT",
        9 => c"TICKLESS_NO_SUCH_BASE",
        10 => c"TICKLESS_WOULD_DEADLOCK",
        11 => c"TICKLESS_NOT_SINGLE_SHOT",
        12 => c"TICKLESS_WRONG_THREAD",
        13 => c"TICKLESS_NO_SUCH_TIMER",
        14 => c"TICKLESS_FULL",
        15 => c"TICKLESS_NO_THREAD",
        16 => c"TICKLESS_ABI_MISMATCH",
        17 => c"TICKLESS_INTERNAL",
        18 => c"TICKLESS_NO_DESCRIPTOR",
        19 => c"TICKLESS_EMPTY",
        20 => c"TICKLESS_TIMED_OUT",
        _ => c"unknown",
    };
    name.as_ptr()
}

#[cold]
pub(crate) fn cancel_status(error: CancelError) -> Status {
    let status = match error {
        CancelError::NotSingleShot => Status::NotSingleShot,
        _ => Status::WouldDeadlock,
    };
    failure(status, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        // SAFETY: the function returns a zero-terminated text that this thread owns.
        let text = unsafe { CStr::from_ptr(tickless_error_text()) };
        text.to_str().unwrap().to_string()
    }

    /// Goal: no panic leaves `entry`, not even one whose payload panics when it is dropped.
    #[test]
    fn panics_do_not_reach_c() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        assert_eq!(entry(|| std::panic::panic_any(Bomb)), Status::Internal);
        assert!(text().contains("panicked"));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        for lead in 0..4 {
            failure(Status::Busy, format!("{}{}", "a".repeat(lead), "ü€𝄞".repeat(99)));
            let kept = text();
            assert!(kept.len() > TEXT_MAX - 5 && kept.len() < TEXT_MAX, "{}", kept.len());
        }
        failure(Status::Busy, "short");
        assert_eq!(text(), "short");
    }

    #[test]
    fn every_status_has_its_name() {
        let name = |status| {
            // SAFETY: the function returns a zero-terminated constant.
            let name = unsafe { CStr::from_ptr(tickless_status_name(status)) };
            name.to_str().unwrap().replace('_', "")
        };
        for status in 0..=Status::TimedOut as i32 {
            assert!(name(status).starts_with("TICKLESS"), "{status}");
        }
        let both = |status: Status| (name(status as i32), format!("TICKLESS{status:?}"));
        for status in [Status::Ok, Status::Shut, Status::NoDescriptor, Status::TimedOut] {
            let (named, debug) = both(status);
            assert_eq!(named, debug.to_uppercase());
        }
        assert_eq!((name(-1), name(21)), ("unknown".into(), "unknown".into()));
    }
}
