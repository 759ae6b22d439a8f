//! Timeouts in classes, each with one duration for all its timeouts, for the program's own loop.

use crate::local::{LocalKey, advance_with, limit, status_of};
use crate::object::{Marked, create, handles, on, optional_result_of, result_of};
use crate::one_thread::{OneThread, adopt, free, owned};
use crate::status::{Outcome, Status, failure, write_optional, write_result};
use crate::timers::duration;
use core::ffi::c_void;
use tickless::local::{Class, Clock, FixedKey, FixedTimeouts, LocalError, system_clock};
use tickless::time::Instant;

/// Timeouts of one thread. All timeouts of a class have one duration, which can change while they
/// are pending. Opaque. Restarting a pending timeout is a single store.
///
/// For example, a server makes a class of the idle timeouts of all connections of a listener. Under
/// overload it halves their duration with one call, and the connections that have been idle longest
/// come due at once.
///
/// Never early; late by at most a sixteenth of the class's duration, or of its original duration if
/// that is longer. Only the owner thread may use it: the thread that created it, or the last one
/// that adopted it, as with `tickless_local_t`.
pub struct Fixed(Marked<OneThread<FixedTimeouts<*mut c_void>>>);

handles! {
    Fixed(OneThread<FixedTimeouts<*mut c_void>>), 0x6669_7865_6474_696d,
        "table of fixed timeouts; create or adopt it in this thread",
        owned => &'a mut FixedTimeouts<*mut c_void>, shared = false;
}

fn class(timers: &FixedTimeouts<*mut c_void>, number: u32) -> Outcome<Class> {
    timers.classes().nth(number as usize).ok_or_else(|| {
        failure(Status::OutOfRange, format_args!("there is no class {number}; add it first"))
    })
}

/// Called by `tickless_fixed_advance` for each timer that fires, under the rules of
/// `tickless_local_callback_t`.
pub type FixedCallback = Option<
    unsafe extern "C-unwind" fn(
        fixed: *mut Fixed,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ),
>;

fn to_key(key: LocalKey) -> FixedKey {
    FixedKey::from_bits(key.bits)
}

/// Creates fixed timeouts without classes on the system's monotonic clock, as
/// `tickless_local_create` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_create(fixed: *mut *mut Fixed) -> Status {
    create(fixed, || Ok(OneThread::new::<Fixed>(FixedTimeouts::new(system_clock()), ())))
}

/// Creates fixed timeouts whose time only `tickless_fixed_advance` moves, and begins at `now_ns`,
/// under the rules of `tickless_local_create_manual`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_create_manual(
    now_ns: u64,
    fixed: *mut *mut Fixed,
) -> Status {
    let clock = Clock::manual(Instant::from_nanos(now_ns));
    create(fixed, || Ok(OneThread::new::<Fixed>(FixedTimeouts::new(clock), ())))
}

/// Returns the time for the next advance, as `tickless_local_now` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_now(fixed: *mut Fixed, now_ns: *mut u64) -> Status {
    result_of(fixed, now_ns, |own| Ok(own.now().as_nanos()))
}

/// Frees fixed timeouts and all timers in them; does nothing if the pointer is null.
///
/// Errors: `TICKLESS_BUSY` in a callback that their advance runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_destroy(fixed: *mut Fixed) -> Status {
    free(fixed)
}

/// Makes the calling thread the owner of these fixed timeouts, as `tickless_local_adopt` does.
///
/// Errors: `TICKLESS_BUSY` in a callback that their advance runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_adopt(fixed: *mut Fixed) -> Status {
    adopt(fixed)
}

/// Adds a class of timers that fire `after_ns` after they are started, and writes its number.
/// Numbers start at 0. A class takes 1 KiB.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_FULL` (65,536 classes).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_add_class(
    fixed: *mut Fixed,
    after_ns: i64,
    number: *mut u32,
) -> Status {
    on(fixed, |own| {
        write_result(number, 0)?;
        own.add_class(duration(after_ns)?).map_err(status_of)?;
        write_result(number, own.classes().len() as u32 - 1)
    })
}

/// Changes the duration of a class, also for its pending timers. Its scale factor stays.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` for a bad duration or if the class does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_set_after(
    fixed: *mut Fixed,
    number: u32,
    after_ns: i64,
) -> Status {
    on(fixed, |own| {
        let (class, after) = (class(own, number)?, duration(after_ns)?);
        own.set_after(class, after).map_err(status_of)
    })
}

/// Scales the duration of a class by a factor, also for its pending timers: 0.5 halves the
/// duration, 1 restores it. Timers that become overdue fire with the next advance.
///
/// Errors: those of `tickless_fixed_set_after`; `TICKLESS_OUT_OF_RANGE` also for a factor that is
/// negative or not a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_scale(
    fixed: *mut Fixed,
    number: u32,
    factor: f64,
) -> Status {
    on(fixed, |own| {
        let class = class(own, number)?;
        own.scale(class, factor).map_err(status_of)
    })
}

/// Inserts a timer of a class without starting it. The callback receives `data` when the timer
/// fires. Allocates occasionally; starting and cancelling never do.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the class does not exist, `TICKLESS_FULL` (2^29 timers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_insert(
    fixed: *mut Fixed,
    number: u32,
    data: *mut c_void,
    key: *mut LocalKey,
) -> Status {
    on(fixed, |own| {
        write_result(key, LocalKey { bits: 0 })?;
        let class = class(own, number)?;
        let made = own.insert(class, data).map_err(status_of)?;
        write_result(key, LocalKey { bits: made.to_bits() })
    })
}

/// Cancels and removes a timer; `data`, which may be null, receives the data of its insertion.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_remove(
    fixed: *mut Fixed,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    optional_result_of(fixed, data, |own| {
        let gone = LocalError::NoSuchTimer;
        own.remove(to_key(key)).ok_or_else(|| status_of(gone))
    })
}

/// Starts or restarts a timer: it fires when its class's duration has passed since this call, or,
/// with a manual clock, since the last advance. Restarting a pending timer is a single store.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_start(fixed: *mut Fixed, key: LocalKey) -> Status {
    on(fixed, |own| own.start(to_key(key)).map_err(status_of))
}

/// Cancels a timer. `was_pending` may be null.
///
/// Errors: those of `tickless_fixed_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_cancel(
    fixed: *mut Fixed,
    key: LocalKey,
    was_pending: *mut bool,
) -> Status {
    optional_result_of(fixed, was_pending, |own| own.cancel(to_key(key)).map_err(status_of))
}

/// Counts the timers, and those that are pending. Either pointer may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_count(
    fixed: *mut Fixed,
    timers: *mut usize,
    pending: *mut usize,
) -> Status {
    optional_result_of(fixed, timers, |own| {
        write_optional(pending, own.pending());
        Ok(own.len())
    })
}

/// Returns when to advance next, on the loop's clock; `TICKLESS_NEVER` if no timer is pending. The
/// cost grows with the number of classes. The time is never later than the next expiry, and can be
/// earlier if timers were restarted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_next_event(fixed: *mut Fixed, next_ns: *mut u64) -> Status {
    result_of(fixed, next_ns, |own| Ok(own.next_event().map_or(u64::MAX, Instant::as_nanos)))
}

/// Sets the current time and calls `callback` for each timer that is due, examining at most
/// `budget` timers; 0 means no limit. Otherwise as `tickless_local_advance`.
///
/// Errors: `TICKLESS_BUSY` in a callback that this call runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_advance(
    fixed: *mut Fixed,
    now_ns: u64,
    budget: usize,
    callback: FixedCallback,
    context: *mut c_void,
    fired: *mut usize,
) -> Status {
    advance_with(fixed, callback, context, fired, |timers, call| {
        timers.advance_at_most(Instant::from_nanos(now_ns), limit(budget), |timers, key| {
            let data = timers.get(key).copied();
            call(timers, key.to_bits(), data);
        })
    })
}
