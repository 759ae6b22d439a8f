//! Timers on a clock that the program advances, for tests that do not wait.

use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, entry, failure, write_result};
use crate::timers::{TimerSet, duration, set};
use tickless::VirtualTime;
use tickless::time::Instant;

/// Starts timers on a clock that stays at `now_ns` until `tickless_virtual_advance` moves it: for
/// tests of code that waits. Starts no thread. Callbacks run inside the call that moves the clock,
/// in order of expiry, and each sees exactly the time at which its timer is due. `options` may be
/// null for the defaults with one base. Otherwise the timers work as those of
/// `tickless_timers_start`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`.
///
/// # Safety
/// `options` is null or points to as many readable bytes as its `size` states; `timers` is
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_virtual(
    options: *const Options,
    now_ns: u64,
    timers: *mut *mut TimerSet,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` is null or writable.
        unsafe { write_result(timers, core::ptr::null_mut()) }?;
        // SAFETY: the caller promises that `options` is null or points to as many readable bytes as
        // its `size` states.
        let options = unsafe { sized::read(options) }?;
        let builder = options.builder()?;
        let builder = if options.bases == 0 { builder.bases(1) } else { builder };
        let time = VirtualTime::with_builder(builder, Instant::from_nanos(now_ns));
        let made = TimerSet::with_time(time.timers().clone(), Some(time));
        // SAFETY: the caller promises that `timers` is null or writable.
        unsafe { write_result(timers, made) }
    })
}

/// Returns the virtual time of a set.
///
/// # Safety
/// As for [`set`].
unsafe fn time<'a>(timers: *const TimerSet) -> Outcome<&'a VirtualTime> {
    // SAFETY: the caller promises that `timers` came from the library and was not stopped.
    let set = unsafe { set(timers) }?;
    set.time.as_ref().ok_or_else(|| {
        let what = "these timers are not on a virtual clock; use tickless_timers_start_virtual";
        failure(Status::Unsupported, what)
    })
}

/// Advances the clock from one expiry to the next, and fires the timers that come due. In a
/// callback of these timers it only moves the clock, as if the callback took that long.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`; `TICKLESS_UNSUPPORTED` if the timers
/// were not started by `tickless_timers_start_virtual`.
///
/// # Safety
/// `timers` came from the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance(timers: *const TimerSet, by_ns: i64) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        unsafe { time(timers) }?.advance(duration(by_ns)?);
        Ok(())
    })
}

/// Advances the clock to a point in time, as `tickless_virtual_advance` does. For a point that has
/// passed, it fires only the overdue timers.
///
/// Errors: those of `tickless_virtual_advance`.
///
/// # Safety
/// `timers` came from the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        unsafe { time(timers) }?.advance_to(Instant::from_nanos(to_ns));
        Ok(())
    })
}

/// Advances the clock to the next expiry, and fires all timers that are due at that time.
/// `has_fired`, which may be null, receives false if no timer was pending that would cause an
/// expiry.
///
/// Errors: those of `tickless_virtual_advance`.
///
/// # Safety
/// `timers` came from the library and was not stopped; `has_fired` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to_next(
    timers: *const TimerSet,
    has_fired: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        let fired = unsafe { time(timers) }?.advance_to_next();
        // SAFETY: the caller promises that `has_fired` is null or writable.
        unsafe { crate::status::write_optional(has_fired, fired) };
        Ok(())
    })
}

/// Returns when the next timer comes due; `TICKLESS_NEVER` if no timer is pending that would cause
/// an expiry.
///
/// Errors: those of `tickless_virtual_advance`.
///
/// # Safety
/// `timers` came from the library and was not stopped; `next_ns` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_next_event(
    timers: *const TimerSet,
    next_ns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        let next = unsafe { time(timers) }?.next_event().unwrap_or(Instant::NEVER);
        // SAFETY: the caller promises that `next_ns` is null or writable.
        unsafe { write_result(next_ns, next.as_nanos()) }
    })
}

/// Sets wall-clock time, in nanoseconds since 1970, forwards or backwards, and fires the timers
/// that this makes due. It starts at 2000-01-01. No other clock moves.
///
/// Errors: those of `tickless_virtual_advance`.
///
/// # Safety
/// `timers` came from the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_set_realtime(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        unsafe { time(timers) }?.set_realtime(Instant::from_nanos(to_ns));
        Ok(())
    })
}

/// Simulates a suspend of the system for `for_ns`: boottime and wall-clock time advance, the
/// monotonic clock does not. Fires the timers that have come due during the suspend.
///
/// Errors: those of `tickless_virtual_advance`.
///
/// # Safety
/// `timers` came from the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_suspend(timers: *const TimerSet, for_ns: i64) -> Status {
    entry(|| {
        // SAFETY: the caller promises that `timers` came from the library and was not stopped.
        unsafe { time(timers) }?.suspend(duration(for_ns)?);
        Ok(())
    })
}
