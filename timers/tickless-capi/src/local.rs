//! Timers for one thread, embedded in its own loop: no threads, no locks.

use crate::fired::window;
use crate::object::{Handle, Marked, create, handles, on, optional_result_of, result_of};
use crate::one_thread::{OneThread, adopt, free, lendable, owned};
use crate::options::{push_out, tick, unknown};
use crate::status::{Outcome, Status, entry, failure, null_callback, write_optional, write_result};
use crate::timer::{TICKLESS_COARSE, TICKLESS_PRECISE};
use crate::timers::negative;
use core::ffi::c_void;
use tickless::LocalTimers;
use tickless::local::{Clock, Key, LocalError, system_clock};
use tickless::time::Instant;

/// Timers of one thread. Opaque. The program's loop asks when the next timer is due, waits that
/// long for its own events, and passes the current time to `tickless_local_advance`, which calls a
/// callback for each timer that fires.
///
/// Only the owner thread may use it: the thread that created it, or the last one that adopted it.
/// Calls from other threads return `TICKLESS_WRONG_THREAD`.
pub struct Local(Marked<OneThread<LocalTimers<*mut c_void>>>);

handles! {
    Local(OneThread<LocalTimers<*mut c_void>>), 0x6c6f_6361_6c74_696d,
        "table of local timers; create or adopt it in this thread",
        owned => &'a mut LocalTimers<*mut c_void>, shared = false;
}

/// Identifies a timer of one `tickless_local_t`. Calls with the key of a removed timer return
/// `TICKLESS_NO_SUCH_TIMER`. A key of zeros never identifies a timer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalKey {
    /// Opaque.
    pub(crate) bits: u64,
}

/// Called by `tickless_local_advance` for each timer that fires; the timer is already idle. The
/// callback may use the timers in every way except to advance or destroy them. It must return; a
/// C++ exception that leaves it aborts the process. `context` is the argument of the advance,
/// `data` that of the timer's insertion.
pub type LocalCallback = Option<
    unsafe extern "C-unwind" fn(
        local: *mut Local,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ),
>;

pub(crate) fn to_key(key: LocalKey) -> Key {
    Key::from_bits(key.bits)
}

/// Converts an error to the status for C, and keeps its text.
#[cold]
#[inline(never)]
pub(crate) fn status_of(error: LocalError) -> Status {
    let status = match error {
        LocalError::NoSuchTimer => Status::NoSuchTimer,
        LocalError::NoSuchClass | LocalError::BadFactor => Status::OutOfRange,
        _ => Status::Full,
    };
    failure(status, error)
}

/// Creates local timers on the system's monotonic clock (`CLOCK_MONOTONIC` on Linux), which
/// `tickless_local_start` and `tickless_local_now` read: a duration counts from the call. `tick_ns`
/// is the tick of coarse timers, 1,000 (1 us) to 1,000,000,000 (1 s), or 0 for 1 ms; `how` is one
/// of `TICKLESS_PUSH_OUT_...`.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_create(
    tick_ns: u64,
    how: u32,
    local: *mut *mut Local,
) -> Status {
    create(local, || on_clock(system_clock(), tick_ns, how))
}

/// Creates local timers whose time only `tickless_local_advance` moves, and begins at `now_ns`, on
/// any clock that the loop chooses. Starting a timer reads no clock: a duration counts from the
/// last advance, so one that is given late in a long turn of the loop ends early by what the turn
/// has taken so far. Otherwise as `tickless_local_create`.
///
/// Errors: those of `tickless_local_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_create_manual(
    now_ns: u64,
    tick_ns: u64,
    how: u32,
    local: *mut *mut Local,
) -> Status {
    create(local, || on_clock(Clock::manual(Instant::from_nanos(now_ns)), tick_ns, how))
}

fn on_clock(clock: Clock, tick_ns: u64, how: u32) -> Outcome<OneThread<LocalTimers<*mut c_void>>> {
    Ok(OneThread::new::<Local>(
        LocalTimers::with_push_out(clock, tick(tick_ns)?, push_out(how)?),
        (),
    ))
}

/// Returns the time for the next advance: a reading of the clock, or, of timers with a manual
/// clock, the time of the last advance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_now(local: *mut Local, now_ns: *mut u64) -> Status {
    result_of(local, now_ns, |timers| Ok(timers.now().as_nanos()))
}

/// Frees local timers and all timers in them; does nothing if the pointer is null.
///
/// Errors: `TICKLESS_BUSY` in a callback that their advance runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_destroy(local: *mut Local) -> Status {
    free(local)
}

/// Makes the calling thread the owner of these local timers. The previous owner must have finished
/// using them, and a lock or a join must order its last use before this call.
///
/// Errors: `TICKLESS_BUSY` in a callback that their advance runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_adopt(local: *mut Local) -> Status {
    adopt(local)
}

/// Inserts a timer, but does not arm it. `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`. The
/// callback receives `data` when the timer fires. Allocates occasionally; arming and cancelling
/// never do.
///
/// Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_FULL` (2^29 coarse or 2^31 precise timers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_insert(
    local: *mut Local,
    kind: u32,
    data: *mut c_void,
    key: *mut LocalKey,
) -> Status {
    on(local, |timers| {
        write_result(key, LocalKey { bits: 0 })?;
        let made = match kind {
            TICKLESS_COARSE => timers.insert(data),
            TICKLESS_PRECISE => timers.insert_precise(data),
            _ => return Err(unknown("kind")),
        };
        write_result(key, LocalKey { bits: made.map_err(status_of)?.to_bits() })
    })
}

/// Cancels and removes a timer; `data`, which may be null, receives the data of its insertion.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_remove(
    local: *mut Local,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    optional_result_of(local, data, |timers| {
        let gone = LocalError::NoSuchTimer;
        timers.remove(to_key(key)).ok_or_else(|| status_of(gone))
    })
}

/// Arms a timer to fire when `after_ns` has passed since this call, or, with a manual clock, since
/// the last advance. A pending timer is rearmed, earlier or later.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_start(
    local: *mut Local,
    key: LocalKey,
    after_ns: i64,
) -> Status {
    on(local, |timers| {
        let after_ns = u64::try_from(after_ns).map_err(|_| negative(after_ns))?;
        timers.start_ns(to_key(key), after_ns).map_err(status_of)
    })
}

/// Arms or rearms a timer for a window on the loop's clock: a precise timer causes no wakeup of its
/// own before `hard_ns`, a coarse timer uses `soft_ns` as its deadline. A window that has passed
/// fires with the next advance.
///
/// Errors: those of `tickless_local_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it
/// begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_start_range(
    local: *mut Local,
    key: LocalKey,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    on(local, |timers| {
        let (soft, hard) = window(soft_ns, hard_ns)?;
        timers.start_range(to_key(key), soft, hard).map_err(status_of)
    })
}

/// Cancels a timer. `was_pending` may be null.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_cancel(
    local: *mut Local,
    key: LocalKey,
    was_pending: *mut bool,
) -> Status {
    on(local, |timers| match timers.cancel_usual(to_key(key)) {
        Some(was) => {
            write_optional(was_pending, was);
            Ok(())
        }
        None => cancel(timers, key, was_pending),
    })
}

/// Cancels a timer, and writes to `was_pending` whether it was pending, unless that is null.
///
/// # Safety
/// `was_pending` is null or writable.
#[inline(never)]
unsafe fn cancel(
    timers: &mut LocalTimers<*mut c_void>,
    key: LocalKey,
    was_pending: *mut bool,
) -> Outcome {
    write_optional(was_pending, timers.cancel(to_key(key)).map_err(status_of)?);
    Ok(())
}

/// Reports whether the timer is pending; false if the key identifies no timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_is_pending(
    local: *mut Local,
    key: LocalKey,
    is_pending: *mut bool,
) -> Status {
    result_of(local, is_pending, |timers| Ok(timers.is_pending(to_key(key))))
}

/// Returns when to advance next, on the loop's clock; `TICKLESS_NEVER` if no timer is pending. This
/// time is perhaps in the past. It is never later than the next expiry, and can be earlier if
/// coarse timers were pushed out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_next_event(local: *mut Local, next_ns: *mut u64) -> Status {
    result_of(local, next_ns, |timers| Ok(timers.next_event().map_or(u64::MAX, Instant::as_nanos)))
}

/// Sets the current time and calls `callback` for each timer that is due, for at most `budget`
/// timers; 0 means no limit. The next advance begins with the remaining ones. A timer that the
/// callback arms for a time that has passed fires with the next advance, so this call ends. If
/// `now_ns` is earlier than the time of the last advance, that time is used instead. `fired`, which
/// may be null, receives how many fired.
///
/// Errors: `TICKLESS_BUSY` in a callback that this call runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_advance(
    local: *mut Local,
    now_ns: u64,
    budget: usize,
    callback: LocalCallback,
    context: *mut c_void,
    fired: *mut usize,
) -> Status {
    advance_with(local, callback, context, fired, |timers, call| {
        timers.advance_at_most(Instant::from_nanos(now_ns), limit(budget), |timers, key| {
            let data = timers.get(key).copied();
            call(timers, key.to_bits(), data);
        })
    })
}

pub(crate) fn limit(budget: usize) -> usize {
    if budget == 0 { usize::MAX } else { budget }
}

/// The type of [`LocalCallback`] and of the callback of fixed timeouts.
type Call<H> = unsafe extern "C-unwind" fn(*mut H, LocalKey, *mut c_void, *mut c_void);

/// Runs the body of an entry point that fires due timers. `advance` passes the key and the data of
/// each timer that fires to its second argument, which calls `callback`.
///
/// # Safety
/// As for [`lendable`], and `fired` is null or writable.
pub(crate) unsafe fn advance_with<H: Handle<Value = OneThread<T>>, T>(
    at: *mut H,
    callback: Option<Call<H>>,
    context: *mut c_void,
    fired: *mut usize,
    advance: impl FnOnce(&mut T, &dyn Fn(&mut T, u64, Option<*mut c_void>)) -> usize,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `at` came from the library and was not destroyed. While
        // a callback runs, this reference is not used: the C functions that the callback calls use
        // the reference that `own.lend` stores below.
        let (own, timers) = unsafe { lendable(at) }?;
        let callback = callback.ok_or_else(null_callback)?;
        let count = advance(timers, &|timers, bits, data| {
            let _loan = own.lend(timers);
            let data = data.unwrap_or(core::ptr::null_mut());
            // SAFETY: C passed a function of this type, as the header requires.
            unsafe { callback(at, LocalKey { bits }, data, context) };
        });
        // SAFETY: the caller promises that `fired` is null or writable.
        unsafe { write_optional(fired, count) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicPtr, Ordering};

    #[derive(Default)]
    struct Seen {
        data: Vec<usize>,
        nested: Vec<Status>,
    }

    /// # Safety
    /// `local` is being advanced, and `context` points to a `Seen`.
    unsafe extern "C-unwind" fn record(
        local: *mut Local,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ) {
        // SAFETY: the caller promises that `context` points to a `Seen` and that `local` is being
        // advanced on this thread.
        unsafe {
            let seen = &mut *context.cast::<Seen>();
            seen.data.push(data.addr());
            let none = core::ptr::null_mut::<*mut c_void>();
            let nested = tickless_local_advance(local, 0, 0, Some(record), context, none.cast());
            seen.nested.push(nested);
            seen.nested.push(tickless_local_destroy(local));
            if data.addr() < 3 {
                seen.nested.push(tickless_local_start(local, key, 5));
            } else {
                seen.nested.push(tickless_local_remove(local, key, none));
            }
        }
    }

    /// Goal: a callback can use the timers that are being advanced. Miri checks that this is sound.
    #[test]
    fn a_callback_may_use_the_timers() {
        // SAFETY: the timers are used by this thread until they are destroyed.
        unsafe {
            let mut local = core::ptr::null_mut();
            assert_eq!(tickless_local_create_manual(0, 0, 0, &mut local), Status::Ok);
            let mut keys = [LocalKey { bits: 0 }; 4];
            for (at, key) in keys.iter_mut().enumerate() {
                let kind = if at % 2 == 0 { TICKLESS_PRECISE } else { TICKLESS_COARSE };
                let data = core::ptr::without_provenance_mut(at);
                assert_eq!(tickless_local_insert(local, kind, data, key), Status::Ok);
                assert_eq!(tickless_local_start(local, *key, 10), Status::Ok);
            }
            let mut seen = Seen::default();
            let (mut fired, context) = (0, (&raw mut seen).cast());
            let later = 1_000_000;
            let status = tickless_local_advance(local, later, 0, Some(record), context, &mut fired);
            assert_eq!((status, fired), (Status::Ok, 4));
            assert_eq!(seen.data, [0, 2, 1, 3]);
            let expected = [Status::Busy, Status::Busy, Status::Ok].repeat(4);
            assert_eq!(seen.nested, expected);
            assert_eq!(tickless_local_start(local, keys[3], 5), Status::NoSuchTimer);
            let mut pending = false;
            assert_eq!(tickless_local_is_pending(local, keys[0], &mut pending), Status::Ok);
            assert!(pending);
            assert_eq!(tickless_local_destroy(local), Status::Ok);
        }
    }

    /// The other thread has no number yet: it calls the C interface for the first time.
    #[test]
    fn other_threads_are_refused_until_they_adopt() {
        // SAFETY: one thread at a time uses the timers.
        unsafe {
            let mut local = core::ptr::null_mut();
            assert_eq!(tickless_local_create_manual(0, 0, 0, &mut local), Status::Ok);
            let shared = AtomicPtr::new(local);
            let other = || {
                let (local, mut next) = (shared.load(Ordering::Relaxed), 0);
                assert_eq!(tickless_local_next_event(local, &mut next), Status::WrongThread);
                assert_eq!(tickless_local_destroy(local), Status::WrongThread);
                assert_eq!(tickless_local_adopt(local), Status::Ok);
                assert_eq!(tickless_local_next_event(local, &mut next), Status::Ok);
            };
            std::thread::scope(|scope| _ = scope.spawn(other));
            assert_eq!(tickless_local_destroy(local), Status::WrongThread);
            assert_eq!(tickless_local_adopt(local), Status::Ok);
            assert_eq!(tickless_local_destroy(local), Status::Ok);
        }
    }
}
