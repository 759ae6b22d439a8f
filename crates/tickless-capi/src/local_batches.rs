//! Local timers many at a time: what a loop does that handles its events in batches.

use crate::local::{Local, LocalKey, known};
use crate::one_thread::Handle;
use crate::status::{Outcome, Status, answer, entry, failure, put};
use core::ffi::c_void;
use tickless::local::LocalError;
use tickless::time::Instant;

/// A timer of a `tickless_local_t`, and what to arm it for.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arming {
    /// Which one.
    pub key: LocalKey,
    /// For when, on the loop's clock.
    pub deadline_ns: u64,
}

/// So many are handed on at once: enough for the core to fetch ahead.
const CHUNK: usize = 128;

/// What a caller has in a row; empty if there is none of it.
///
/// # Safety
/// `at` is null, or leads to `count` of them, which stay as they are while the result is used.
pub(crate) unsafe fn row<'a, T>(at: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(failure(Status::NullPointer, "the pointer to the array is null"));
    }
    if !at.is_aligned() {
        return Err(failure(Status::Misaligned, "the array is not aligned as its type demands"));
    }
    // SAFETY: as promised.
    Ok(unsafe { core::slice::from_raw_parts(at, count) })
}

/// Makes room for so many timers of each kind, so that inserting them does not allocate.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`, `TICKLESS_FULL` for more than there
/// can be.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_reserve(local: *mut Local, timers: usize) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Local::own_thread(local)?.value() };
        if timers > 1 << 29 {
            return Err(failure(Status::Full, "there are never more than 2^29 timers"));
        }
        own.reserve(timers);
        Ok(())
    })
}

/// What a timer was inserted with.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `data` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_data(
    local: *mut Local,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Local::own_thread(local)?.value() };
        let gone = LocalError::NoSuchTimer(known(key));
        let held = own.value(known(key)).copied().ok_or_else(|| crate::local::wrong(gone))?;
        // SAFETY: as promised.
        unsafe { answer(data, held) }
    })
}

/// How many timers there are, and how many of them are pending. Either pointer may be null.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; the others are null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_count(
    local: *mut Local,
    timers: *mut usize,
    pending: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Local::own_thread(local)?.value() };
        // SAFETY: as promised.
        unsafe {
            put(timers, own.len());
            put(pending, own.pending());
        }
        Ok(())
    })
}

/// Arms many timers, or arms them anew, each for its own deadline: cheaper than one at a time, as
/// the next ones are fetched from memory meanwhile. Keys of timers that have been removed are
/// passed over; `armed`, which may be null, receives how many were not.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `armings` leads to `count` of
/// them; `armed` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_start_many(
    local: *mut Local,
    armings: *const Arming,
    count: usize,
    armed: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let (own, armings) = unsafe { (Local::own_thread(local)?.value(), row(armings, count)?) };
        let mut started = 0;
        for chunk in armings.chunks(CHUNK) {
            let mut pairs = [(known(LocalKey { bits: 0 }), Instant::NEVER); CHUNK];
            for (pair, arming) in pairs.iter_mut().zip(chunk) {
                *pair = (known(arming.key), Instant::from_nanos(arming.deadline_ns));
            }
            started += own.start_many(&pairs[..chunk.len()]);
        }
        // SAFETY: as promised.
        unsafe { put(armed, started) };
        Ok(())
    })
}

/// Cancels many timers. `cancelled`, which may be null, receives how many were pending.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `keys` leads to `count` of
/// them; `cancelled` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_cancel_many(
    local: *mut Local,
    keys: *const LocalKey,
    count: usize,
    cancelled: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let (own, keys) = unsafe { (Local::own_thread(local)?.value(), row(keys, count)?) };
        let mut ended = 0;
        for chunk in keys.chunks(CHUNK) {
            let mut batch = [known(LocalKey { bits: 0 }); CHUNK];
            for (to, key) in batch.iter_mut().zip(chunk) {
                *to = known(*key);
            }
            ended += own.cancel_many(&batch[..chunk.len()]);
        }
        // SAFETY: as promised.
        unsafe { put(cancelled, ended) };
        Ok(())
    })
}

/// Says what time it is, and writes the keys of the timers that are due into `keys`, in the order
/// in which they fire; they are not pending any more. The fastest way to take many. Looks at no
/// more than `room` timers, those that were cancelled included, so it may find none; where more are
/// due `tickless_local_next_event` has passed, and the next call begins with them. Allocates if any
/// fire.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`;
/// `TICKLESS_BUSY` in a callback of an advance.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `keys` leads to room for as
/// many as `room` says; `fired` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_advance_into(
    local: *mut Local,
    now_ns: u64,
    keys: *mut LocalKey,
    room: usize,
    fired: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Local::own_thread(local) }?;
        own.idle(&Local::SORT)?;
        // SAFETY: as promised, for the room; what stands in it is not looked at.
        unsafe { row(keys.cast::<core::mem::MaybeUninit<LocalKey>>(), room) }?;
        // SAFETY: as promised.
        unsafe { answer(fired, 0) }?;
        // SAFETY: nobody else has them until this returns.
        let timers = unsafe { own.value() };
        let mut due = Vec::new();
        timers.advance_into_at_most(Instant::from_nanos(now_ns), room, &mut due);
        for (at, key) in due.iter().enumerate() {
            // SAFETY: there is room for as many as were looked at.
            unsafe { keys.add(at).write(LocalKey { bits: key.to_bits() }) };
        }
        // SAFETY: as promised.
        unsafe { answer(fired, due.len()) }
    })
}
