//! What calls return, and the panic boundary around each of them.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call returns. Everything but `TICKLESS_OK` is an error, and has changed nothing
/// unless it says so; `tickless_error_text` has a sentence on what to do.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All is well.
    Ok = 0,
    /// A pointer that must not be null is null.
    NullPointer = 1,
    /// A pointer to storage that is not aligned as its type demands.
    Misaligned = 2,
    /// A struct of a size, or a flag or choice, that this version of the library does not know.
    Unsupported = 3,
    /// A number outside of its range: a negative duration, say.
    OutOfRange = 4,
    /// The storage was never initialised, has been destroyed, or was copied from elsewhere.
    NotInitialised = 5,
    /// The storage holds a timer already. Destroy that first.
    AlreadyInitialised = 6,
    /// It is still in use: a set of timers by its timers, local timers by their own advance.
    Busy = 7,
    /// The timer has been shut down, or a fork has left it behind in a child.
    Shut = 8,
    /// There is no base of this number.
    NoSuchBase = 9,
    /// The call would wait for a callback that waits for the caller. A cancel that returns this
    /// has cancelled the timer, but its callback may still be running.
    WouldDeadlock = 10,
    /// `cancel_single_shot` of a timer that was armed again while its callback ran. It has been
    /// cancelled, and its callback is over.
    NotSingleShot = 11,
    /// Local timers were used by another thread than their own.
    WrongThread = 12,
    /// The key's timer has been removed, or is another table's.
    NoSuchTimer = 13,
    /// There is no room for another local timer.
    Full = 14,
    /// The system refused a thread.
    NoThread = 15,
    /// The program was compiled with the header of another version.
    AbiMismatch = 16,
    /// A defect in the library: it panicked, and the panic was caught at its edge. What the call
    /// was about is in an unknown state.
    Internal = 17,
    /// The system refused a descriptor for a loop.
    NoDescriptor = 18,
    /// Too few permits are left in this period, or others wait for them.
    Empty = 19,
    /// What was waited for did not come in time.
    TimedOut = 20,
}

/// How an entry ends inside: the error's text has been kept when it is made.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

const TEXT_MAX: usize = 256;

/// The text of a thread's last error: bytes, the last of them zero. Needs neither an allocation
/// nor a destructor, so it is there for as long as its thread runs.
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

/// An error, with its text kept for the calling thread.
#[cold]
pub(crate) fn failure(status: Status, what: impl fmt::Display) -> Status {
    LAST.with_borrow_mut(|text| {
        text.len = 0;
        // A text that panics or fails half-way is as long as it got.
        let _ = write!(text, "{what}");
    });
    status
}

/// The panic boundary: what every entry runs in.
#[inline]
pub(crate) fn entry(body: impl FnOnce() -> Outcome) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(payload) => panicked(payload),
    }
}

#[cold]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> Status {
    // Dropping it might panic again.
    std::mem::forget(payload);
    failure(Status::Internal, "the library panicked; please report what it printed")
}

/// Writes a result through a caller's pointer, if there is one.
///
/// # Safety
/// `place` is null or may be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as promised.
        unsafe { place.write_unaligned(value) };
    }
}

/// The same for a result that is the purpose of the call.
///
/// # Safety
/// `place` is null or may be written.
pub(crate) unsafe fn answer<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(failure(Status::NullPointer, "the pointer for the result is null"));
    }
    // SAFETY: as promised.
    unsafe { put(place, value) };
    Ok(())
}

/// A sentence about the last error of the calling thread, in English and UTF-8: what is wrong
/// and what to do. Empty if there was none. The text belongs to the library, and is good until
/// this thread's next call that fails. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn tickless_error_text() -> *const c_char {
    LAST.with(|text| text.as_ptr()).cast::<Text>().cast_const().cast()
}

/// The name of a status, "TICKLESS_BUSY" say; "unknown" for any other number. Never null.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        // SAFETY: a text that this thread keeps, with a zero at its end.
        let text = unsafe { CStr::from_ptr(tickless_error_text()) };
        text.to_str().unwrap().to_string()
    }

    /// Goal: a panic ends at the edge, whatever it carries.
    #[test]
    fn panics_do_not_cross() {
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
            // SAFETY: names are constants.
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
