//! Timers on a clock that the program advances, for tests that do not wait.

use crate::object::{create, on, optional_result_of, result_of};
use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, failure};
use crate::timers::{Set, TimerSet, duration};
use tickless::time::Instant;
use tickless::{VirtualTime, slots};

/// Starts timers on a clock that stays at `now_ns` until `tickless_virtual_advance` moves it: for
/// tests of code that waits. Starts no thread. Callbacks run inside the call that moves the clock,
/// in order of expiry, and each sees exactly the time at which its timer is due. `options` may be
/// null for the defaults with one base. Otherwise the timers work as those of
/// `tickless_timers_start`.
///
/// Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start_virtual(
    options: *const Options,
    now_ns: u64,
    timers: *mut *mut TimerSet,
) -> Status {
    create(timers, || {
        let options = sized::read(options)?;
        let builder = options.builder()?;
        let builder = if options.bases == 0 { builder.bases(1) } else { builder };
        let time = VirtualTime::with_builder(builder, Instant::from_nanos(now_ns));
        Ok(Set::new(time.timers().clone(), Some(time)))
    })
}

impl Set {
    /// Returns the clock that the program advances, or the error for C.
    fn virtual_time(&self) -> Outcome<&VirtualTime> {
        if slots::is_forked_child(&self.timers) {
            let what = "virtual time does not go on in a forked child; start new timers there";
            return Err(failure(Status::Shut, what));
        }
        self.time.as_ref().ok_or_else(|| {
            let what = "these timers are not on a virtual clock; use tickless_timers_start_virtual";
            failure(Status::Unsupported, what)
        })
    }
}

/// Advances the clock from one expiry to the next, and fires the timers that come due. If a
/// callback of these timers calls it, it only moves the clock, as if the callback took that long.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`; `TICKLESS_UNSUPPORTED` if the timers were not started by
/// `tickless_timers_start_virtual`; `TICKLESS_SHUT` in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance(timers: *const TimerSet, by_ns: i64) -> Status {
    on(timers, |set| {
        let by = duration(by_ns)?;
        set.virtual_time().map(|time| time.advance(by))
    })
}

/// Advances the clock to a point in time, as `tickless_virtual_advance` does. For a point that has
/// passed, it fires only the overdue timers.
///
/// Errors: those of `tickless_virtual_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    on(timers, |set| set.virtual_time().map(|time| time.advance_to(Instant::from_nanos(to_ns))))
}

/// Advances the clock to the next expiry, and fires all timers that are due at that time.
/// `has_fired`, which may be null, receives false if no timer was pending that would cause an
/// expiry.
///
/// Errors: those of `tickless_virtual_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_advance_to_next(
    timers: *const TimerSet,
    has_fired: *mut bool,
) -> Status {
    optional_result_of(timers, has_fired, |set| Ok(set.virtual_time()?.advance_to_next()))
}

/// Returns when the next timer comes due; `TICKLESS_NEVER` if no timer is pending that would cause
/// an expiry.
///
/// Errors: those of `tickless_virtual_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_next_event(
    timers: *const TimerSet,
    next_ns: *mut u64,
) -> Status {
    result_of(timers, next_ns, |set| {
        let next = set.virtual_time()?.next_event();
        Ok(next.unwrap_or(Instant::NEVER).as_nanos())
    })
}

/// Sets wall-clock time, in nanoseconds since 1970, forwards or backwards, and fires the timers
/// that this makes due. Wall-clock time begins at 2000-01-01. No other clock moves.
///
/// Errors: those of `tickless_virtual_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_set_realtime(
    timers: *const TimerSet,
    to_ns: u64,
) -> Status {
    on(timers, |set| set.virtual_time().map(|time| time.set_realtime(Instant::from_nanos(to_ns))))
}

/// Simulates a suspend of the system for `for_ns`: boottime and wall-clock time advance, the
/// monotonic clock does not. Fires the timers that have come due during the suspend.
///
/// Errors: those of `tickless_virtual_advance`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_virtual_suspend(timers: *const TimerSet, for_ns: i64) -> Status {
    on(timers, |set| {
        let time = duration(for_ns)?;
        set.virtual_time().map(|clock| clock.suspend(time))
    })
}
