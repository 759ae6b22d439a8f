//! Memory, data and counts of local timers, and firing many of them in one call.

use crate::local::{Local, LocalKey, to_key};
use crate::object::{on, optional_result_of, result_of};
use crate::one_thread::lendable;
use crate::status::{Outcome, Status, entry, failure, write_optional, write_result};
use core::ffi::c_void;
use tickless::local::LocalError;
use tickless::time::Instant;

/// Returns a caller's array as a slice. If `count` is 0, `at` is ignored.
///
/// # Safety
/// `at` is null, or points to `count` elements that do not change while the result is used.
pub(crate) unsafe fn caller_slice<'a, T>(at: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(failure(Status::NullPointer, "the pointer to the array is null"));
    }
    if !at.is_aligned() {
        return Err(failure(Status::Misaligned, "the array is not aligned as its type requires"));
    }
    // SAFETY: the caller promises that `at` points to `count` elements that do not change while the
    // result is used.
    Ok(unsafe { core::slice::from_raw_parts(at, count) })
}

/// Reserves memory for `timers` timers of each kind, so that inserting them does not allocate.
///
/// Errors: `TICKLESS_FULL` for more than 2^29 timers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_reserve(local: *mut Local, timers: usize) -> Status {
    on(local, |own| {
        if timers > 1 << 29 {
            return Err(failure(Status::Full, "a table holds at most 2^29 timers"));
        }
        own.reserve(timers);
        Ok(())
    })
}

/// Returns the data that a timer was inserted with.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_data(
    local: *mut Local,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    result_of(local, data, |own| {
        let gone = LocalError::NoSuchTimer;
        own.get(to_key(key)).copied().ok_or_else(|| crate::local::status_of(gone))
    })
}

/// Counts the timers, and those that are pending. Either pointer may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_count(
    local: *mut Local,
    timers: *mut usize,
    pending: *mut usize,
) -> Status {
    optional_result_of(local, timers, |own| {
        write_optional(pending, own.pending());
        Ok(own.len())
    })
}

/// Sets the current time, and writes the keys of the due timers into `keys`, in the order in which
/// they fire; these timers are no longer pending. The fastest way to fire many timers. It examines
/// at most `room` timers, including cancelled ones, so it can report none although one is due. If
/// more are due, `tickless_local_next_event` returns a time that has passed, and the next call
/// begins with them. Allocates if a timer fires.
///
/// Errors: `TICKLESS_BUSY` in a callback of an advance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_advance_into(
    local: *mut Local,
    now_ns: u64,
    keys: *mut LocalKey,
    room: usize,
    fired: *mut usize,
) -> Status {
    entry(|| {
        let (_, timers) = lendable(local)?;
        // `MaybeUninit`: the array is not read.
        caller_slice(keys.cast::<core::mem::MaybeUninit<LocalKey>>(), room)?;
        write_result(fired, 0)?;
        let mut due = Vec::new();
        timers.advance_into_at_most(Instant::from_nanos(now_ns), room, &mut due);
        // At most `room` timers were examined, so `at` is less than `room`.
        for (at, key) in due.iter().enumerate() {
            keys.add(at).write(LocalKey { bits: key.to_bits() });
        }
        write_result(fired, due.len())
    })
}
