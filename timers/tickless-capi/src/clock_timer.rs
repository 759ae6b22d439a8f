//! Timers on clocks that can be set or that advance during a suspend.

use crate::fired::{CCallback, running, window};
use crate::object::{
    Marked, Object, create, destroy, handles, on, optional_result_of, result_of, value,
};
use crate::options::unknown;
use crate::status::{Outcome, Status, cancel_status, write_optional};
use crate::timer::{CancelFound, cancel_with, started};
use crate::timers::{TimerSet, duration, period};
use core::ffi::c_void;
use core::ptr::NonNull;
use tickless::CancelError;
use tickless::clock::{ClockFired, ClockTimer, TimeBase};
use tickless::time::Instant;

/// `clock`: the clock of all other timers. It is never set, and does not advance while the system
/// is suspended.
pub const TICKLESS_CLOCK_MONOTONIC: u32 = 0;
/// `clock`: the time since boot. It is never set, and advances while the system is suspended.
pub const TICKLESS_CLOCK_BOOTTIME: u32 = 1;
/// `clock`: wall-clock time, in nanoseconds since 1970. It can be set forwards or backwards, and
/// advances while the system is suspended.
pub const TICKLESS_CLOCK_REALTIME: u32 = 2;

/// A timer whose deadlines are on a clock of the program's choice; created by
/// `tickless_clock_timer_create`. Opaque.
///
/// Never early on its own clock. Setting wall-clock time does not change absolute deadlines on it:
/// a deadline that has now passed fires at once, and if the clock was set back the timer fires when
/// the clock reaches the deadline again. Setting the clock does not affect durations: ten seconds
/// remain ten seconds. On boottime, deadlines and durations include suspends.
///
/// The first such timer of a set starts a thread that waits for wall-clock time to be set. If the
/// program's own loop drives the set, no thread is started, and the timers check their clock once a
/// second.
pub struct Clocked(Marked<ClockTimer>);

handles! {
    Clocked(ClockTimer), 0x636c_6f63_6b74_696d,
        "clock timer; pass a pointer from tickless_clock_timer_create", value => &'a ClockTimer;
}

/// A clock timer that fires, as its callback sees it. Opaque; valid until the callback returns, in
/// the thread that runs it.
#[derive(Clone, Copy, Debug)]
pub struct ClockExpiry {
    fired: NonNull<ClockFired<'static>>,
}

/// The callback of a clock timer, under the rules of `tickless_callback_t`.
pub type ClockCallback =
    Option<unsafe extern "C-unwind" fn(fired: *mut ClockExpiry, data: *mut c_void)>;

fn clock(number: u32) -> Outcome<TimeBase> {
    match number {
        TICKLESS_CLOCK_MONOTONIC => Ok(TimeBase::Monotonic),
        TICKLESS_CLOCK_BOOTTIME => Ok(TimeBase::Boottime),
        TICKLESS_CLOCK_REALTIME => Ok(TimeBase::Realtime),
        _ => Err(unknown("clock")),
    }
}

/// Reads the current time of a clock, in nanoseconds. One system call, except for the monotonic
/// clock.
///
/// Errors: `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_now_on(
    timers: *const TimerSet,
    clock_number: u32,
    now_ns: *mut u64,
) -> Status {
    result_of(timers, now_ns, |set| Ok(set.timers.now_on(clock(clock_number)?).as_nanos()))
}

/// Creates a timer on one of the clocks `TICKLESS_CLOCK_...`, without arming it. When it fires, a
/// thread of the library calls `callback` with `data`. Allocates.
///
/// Errors: `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_create(
    timers: *const TimerSet,
    clock_number: u32,
    callback: ClockCallback,
    data: *mut c_void,
    timer: *mut *mut Clocked,
) -> Status {
    create(timer, || {
        let timers = &TimerSet::lend(timers)?.timers;
        let (call, clock) = (CCallback::new(callback, data)?, clock(clock_number)?);
        let timer = timers.clock_timer(clock, move |fired| {
            call.call(ClockExpiry { fired: NonNull::from(fired).cast() });
        });
        Ok(timer.labelled("a C clock timer"))
    })
}

/// Arms or rearms a timer to fire `after_ns` from now. The duration includes suspends on boottime
/// only, and does not depend on wall-clock time being set.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_start(
    timer: *const Clocked,
    after_ns: i64,
) -> Status {
    on(timer, |timer| started(timer.start(duration(after_ns)?)))
}

/// Arms or rearms a timer for a window on its own clock: not before `soft_ns`, and at `hard_ns`
/// with a wakeup of its own. Pass equal values for a point in time. A window that has passed fires
/// at once.
///
/// Errors: those of `tickless_clock_timer_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before
/// it begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_start_range(
    timer: *const Clocked,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    on(timer, |timer| {
        let (soft, hard) = window(soft_ns, hard_ns)?;
        started(timer.start_range(soft, hard))
    })
}

/// Cancels a timer without waiting for its callback, as `tickless_timer_cancel` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_cancel(
    timer: *const Clocked,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |timer| Ok(timer.cancel()))
}

/// Cancels a timer and waits until no thread runs its callback, as `tickless_timer_cancel_sync`
/// does.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` as in `tickless_timer_cancel_sync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_cancel_sync(
    timer: *const Clocked,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |timer| timer.cancel_sync())
}

/// Reports whether the timer is armed. The answer can be out of date at once, because other threads
/// can arm or cancel the timer at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_is_pending(
    timer: *const Clocked,
    is_pending: *mut bool,
) -> Status {
    result_of(timer, is_pending, |timer| Ok(timer.is_pending()))
}

/// Destroys a timer, after its callback has returned; does nothing if the pointer is null. In the
/// timer's own callback it does not wait.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this timer's callback waits
/// for: the timer is shut down, but still exists; destroy it again later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_destroy(timer: *mut Clocked) -> Status {
    destroy(timer, |timer| match timer.shutdown_sync() {
        Ok(_) | Err(CancelError::OwnCallback) => Ok(()),
        Err(error) => Err(cancel_status(error)),
    })
}

impl Object for ClockExpiry {
    type Lent<'a> = &'a mut ClockFired<'static>;

    unsafe fn lend<'a>(expiry: *const ClockExpiry) -> Outcome<Self::Lent<'a>> {
        // SAFETY: as for this function; this is the only reference.
        unsafe { running(expiry).map(|it| &mut *it.fired.as_ptr()) }
    }
}

/// Reads the deadline that the timer was armed with, and the current time of its own clock. Pass
/// null for results that are not needed. The deadline is on the timer's own clock, except after a
/// realtime timer was started for a duration: then it is on `TICKLESS_CLOCK_MONOTONIC`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_info(
    fired: *mut ClockExpiry,
    deadline_ns: *mut u64,
    now_ns: *mut u64,
) -> Status {
    optional_result_of(fired, deadline_ns, |fired| {
        if !now_ns.is_null() {
            write_optional(now_ns, fired.now().as_nanos());
        }
        Ok(fired.deadline().as_nanos())
    })
}

/// Requests that the timer be armed again, `after_ns` from now, when the callback has returned, as
/// `tickless_fired_restart` does.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_restart(
    fired: *mut ClockExpiry,
    after_ns: i64,
) -> Status {
    on(fired, |fired| duration(after_ns).map(|after| fired.restart(after)))
}

/// Requests that the timer be armed again for a point in time on its own clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_restart_at(
    fired: *mut ClockExpiry,
    deadline_ns: u64,
) -> Status {
    on(fired, |fired| {
        fired.restart_at(Instant::from_nanos(deadline_ns));
        Ok(())
    })
}

/// Requests that the timer be armed again a whole number of periods of its own clock after its own
/// deadline, at the first such time that has not passed. `overruns`, which may be null, receives
/// how many expiries were missed. If the clock is set back, the timer fires when the clock reaches
/// the next such time.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_forward(
    fired: *mut ClockExpiry,
    period_ns: i64,
    overruns: *mut u64,
) -> Status {
    optional_result_of(fired, overruns, |fired| {
        Ok(fired.forward(period(period_ns)?).saturating_sub(1))
    })
}
