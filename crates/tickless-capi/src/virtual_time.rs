//! Timers on a clock that the program moves: tests that wait in no time.

use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, answer, entry, failure};
use crate::timers::{TimerSet, duration, set};
use tickless::VirtualTime;
use tickless::time::Instant;

/// Starts timers on a clock that stands at `now_ns` until `tickless_virtual_advance` moves it: for
/// tests of code that waits. No thread; callbacks run inside of the call that moves the clock, in
/// order of expiry, each at exactly the time at which its timer comes due. `options` may be null
/// for the defaults with one base. Everything else works as with other timers.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`.
///
/// # Safety
/// `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_virtual(
    options: *const Options,
    now_ns: u64,
    timers: *mut *mut TimerSet,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(timers, core::ptr::null_mut()) }?;
        // SAFETY: as promised.
        let options = unsafe { sized::read(options) }?;
        let builder = options.builder()?;
        let builder = if options.bases == 0 { builder.bases(1) } else { builder };
        let time = VirtualTime::with_builder(builder, Instant::from_nanos(now_ns));
        let made = TimerSet::with_time(time.timers().clone(), Some(time));
        // SAFETY: as promised.
        unsafe { answer(timers, made) }
    })
}

/// What moves a set's clock.
///
/// # Safety
/// As for [`set`].
unsafe fn time<'a>(timers: *const TimerSet) -> Outcome<&'a VirtualTime> {
    // SAFETY: as promised.
    let set = unsafe { set(timers) }?;
    set.time.as_ref().ok_or_else(|| {
        let what = "the clock of these timers moves by itself; use tickless_timers_start_virtual";
        failure(Status::Unsupported, what)
    })
}

/// Moves the clock on, from one expiry to the next, and runs what comes due. In a callback of these
/// timers it only moves the clock: the callback takes so long.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`; `TICKLESS_UNSUPPORTED` if the timers
/// were not started by `tickless_timers_start_virtual`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance(timers: *const TimerSet, by_ns: i64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { time(timers) }?.advance(duration(by_ns)?);
        Ok(())
    })
}

/// The same up to a point in time. A point that has passed runs only what is overdue.
///
/// Errors: as `tickless_virtual_advance`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { time(timers) }?.advance_to(Instant::from_nanos(to_ns));
        Ok(())
    })
}

/// Moves the clock to the next expiry, and runs all that this instant brings about. `has_fired`,
/// which may be null, is false if nothing was pending that would ever fire by itself.
///
/// Errors: as `tickless_virtual_advance`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `has_fired` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to_next(
    timers: *const TimerSet,
    has_fired: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let fired = unsafe { time(timers) }?.advance_to_next();
        // SAFETY: as promised.
        unsafe { crate::status::put(has_fired, fired) };
        Ok(())
    })
}

/// When the next timer comes due; `TICKLESS_NEVER` if nothing is pending that would fire by itself.
///
/// Errors: as `tickless_virtual_advance`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `next_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_next_event(
    timers: *const TimerSet,
    next_ns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let next = unsafe { time(timers) }?.next_event().unwrap_or(Instant::NEVER);
        // SAFETY: as promised.
        unsafe { answer(next_ns, next.as_nanos()) }
    })
}

/// Sets the time of day, in nanoseconds since 1970, forwards or backwards, and runs what comes due
/// by that. It begins at 2000-01-01. No other clock moves.
///
/// Errors: as `tickless_virtual_advance`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_set_realtime(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { time(timers) }?.set_realtime(Instant::from_nanos(to_ns));
        Ok(())
    })
}

/// The system is suspended for so long: boottime and the time of day go on, the clock that timers
/// run on does not. Runs what has come due meanwhile.
///
/// Errors: as `tickless_virtual_advance`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_suspend(timers: *const TimerSet, for_ns: i64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { time(timers) }?.suspend(duration(for_ns)?);
        Ok(())
    })
}
