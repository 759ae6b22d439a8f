//! Timers on clocks that are set or go on over a suspend.

use crate::fired::window;
use crate::options::unknown;
use crate::status::{Outcome, Status, answer, entry, failure, put};
use crate::timer::{CancelFound, cancelled, refused};
use crate::timers::{TimerSet, duration, handed_out, none_here, set};
use core::ffi::c_void;
use core::ptr::NonNull;
use tickless::CancelError;
use tickless::callback::{StartError, Started};
use tickless::clock::{ClockFired, ClockTimer, TimeBase};
use tickless::time::Instant;

/// `clock`: that of all other timers. It is never set, and stands while the system is suspended.
pub const TICKLESS_CLOCK_MONOTONIC: u32 = 0;
/// `clock`: the time since boot. It is never set, and goes on while the system is suspended.
pub const TICKLESS_CLOCK_BOOTTIME: u32 = 1;
/// `clock`: the time of day, in nanoseconds since 1970. It may be set, forwards or backwards, and
/// goes on while the system is suspended.
pub const TICKLESS_CLOCK_REALTIME: u32 = 2;

/// A timer whose deadlines are on a clock of the program's choice; from
/// `tickless_clock_timer_create`. Opaque.
///
/// Never early on its own clock. When the time of day is set, absolute deadlines on it stay what
/// they are: they fire at once if they have passed, and are put off if it went back. Durations are
/// left alone: ten seconds are ten seconds. On boottime both count the time of a suspend.
///
/// The first one of a set starts a thread that waits for the clock to be set, unless a loop of the
/// program's drives the set: there such timers look at their clock once a second.
pub struct Clocked {
    mark: u64,
    timer: ClockTimer,
}

const MARK: u64 = 0x636c_6f63_6b74_696d;
const NAME: &str = "clock timer; pass what tickless_clock_timer_create handed out";

/// A clock timer that fires, as its callback sees it. Opaque; good until the callback returns, and
/// in the thread that runs it.
pub struct ClockExpiry {
    fired: NonNull<ClockFired<'static>>,
}

/// What a clock timer calls when it fires; as `tickless_callback_t`.
pub type ClockCallback =
    Option<unsafe extern "C-unwind" fn(fired: *mut ClockExpiry, data: *mut c_void)>;

/// A callback with its data.
#[derive(Clone, Copy)]
struct Call {
    callback: unsafe extern "C-unwind" fn(*mut ClockExpiry, *mut c_void),
    data: *mut c_void,
}

// SAFETY: the header says that callbacks run on threads of the library, so the data is meant to be
// used there.
unsafe impl Send for Call {}

impl Call {
    fn call(self, fired: &mut ClockFired<'_>) {
        let mut expiry = ClockExpiry { fired: NonNull::from(fired).cast() };
        // SAFETY: a function of this type, as the header asks for; the expiry is good until it
        // returns.
        unsafe { (self.callback)(&raw mut expiry, self.data) }
    }
}

fn clock(number: u32) -> Outcome<TimeBase> {
    match number {
        TICKLESS_CLOCK_MONOTONIC => Ok(TimeBase::Monotonic),
        TICKLESS_CLOCK_BOOTTIME => Ok(TimeBase::Boottime),
        TICKLESS_CLOCK_REALTIME => Ok(TimeBase::Realtime),
        _ => Err(unknown("clock")),
    }
}

/// # Safety
/// `timer` is null or leads to something that is readable for as long as the result is used.
unsafe fn live<'a>(timer: *const Clocked) -> Outcome<&'a ClockTimer> {
    // SAFETY: as promised.
    let known = unsafe { handed_out(timer, NAME) }?;
    if known.mark == MARK { Ok(&known.timer) } else { Err(none_here(NAME)) }
}

/// What a clock shows, in nanoseconds. One system call, but for the monotonic one.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `now_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_now_on(
    timers: *const TimerSet,
    clock_number: u32,
    now_ns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let set = unsafe { set(timers) }?;
        // SAFETY: as promised.
        unsafe { answer(now_ns, set.timers.now_on(clock(clock_number)?).as_nanos()) }
    })
}

/// Makes a timer on a clock of the program's choice, one of `TICKLESS_CLOCK_...`, not armed. When
/// it fires `callback` is called with `data`, on a thread of the library. Allocates.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `timer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_create(
    timers: *const TimerSet,
    clock_number: u32,
    callback: ClockCallback,
    data: *mut c_void,
    timer: *mut *mut Clocked,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(timer, core::ptr::null_mut()) }?;
        // SAFETY: as promised.
        let timers = &unsafe { set(timers) }?.timers;
        let Some(callback) = callback else {
            return Err(failure(Status::NullPointer, "the callback is null"));
        };
        let call = Call { callback, data };
        let made = timers.clock_timer(clock(clock_number)?, move |fired| {
            // The whole of it, which may be sent.
            let call: Call = call;
            call.call(fired);
        });
        let made = Box::into_raw(Box::new(Clocked { mark: MARK, timer: made }));
        // SAFETY: as promised.
        unsafe { answer(timer, made) }
    })
}

fn started(result: Result<Started, StartError>) -> Outcome {
    result.map(drop).map_err(|error| failure(Status::Shut, error))
}

/// Arms a timer, or arms it anew, to fire `after_ns` from now: on boottime with the time of
/// suspends, on the other clocks without it, and whatever the time of day is set to.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`, `TICKLESS_NULL_POINTER`,
/// `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_start(
    timer: *const Clocked,
    after_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        started(timer.start(duration(after_ns)?))
    })
}

/// Arms a timer, or arms it anew, for a window on its own clock: not before `soft_ns`, and at
/// `hard_ns` with a wakeup of its own. For a point in time both are the same. One that has passed
/// fires at once.
///
/// Errors: as `tickless_clock_timer_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it
/// begins.
///
/// # Safety
/// `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_start_range(
    timer: *const Clocked,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        let (soft, hard) = window(soft_ns, hard_ns)?;
        started(timer.start_range(soft, hard))
    })
}

/// Cancels a timer without waiting for its callback; as `tickless_timer_cancel`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `found` is
/// null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_cancel(
    timer: *const Clocked,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { cancelled(Ok(live(timer)?.cancel()), found) }
    })
}

/// Cancels a timer and waits until its callback runs nowhere; as `tickless_timer_cancel_sync`.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` as there, `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `found` is
/// null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_cancel_sync(
    timer: *const Clocked,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { cancelled(live(timer)?.cancel_sync(), found) }
    })
}

/// Is the timer armed? May be out of date as soon as it is known.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `is_pending`
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_is_pending(
    timer: *const Clocked,
    is_pending: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(is_pending, live(timer)?.is_pending()) }
    })
}

/// Ends a timer, waits until its callback is over, and frees it; null is nothing to do. In the
/// timer's own callback it does not wait.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this one's callback waits
/// for: the timer is shut down, and still there; destroy it again later.
///
/// # Safety
/// `timer` is null or came from `tickless_clock_timer_create` and was not destroyed; no other
/// thread uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_timer_destroy(timer: *mut Clocked) -> Status {
    entry(|| {
        let Some(place) = NonNull::new(timer) else { return Ok(()) };
        // SAFETY: as promised.
        match unsafe { live(timer) }?.shutdown_sync() {
            Ok(_) | Err(CancelError::OwnCallback) => {}
            Err(error) => return Err(refused(error)),
        }
        // SAFETY: it came from `Box::into_raw`, and is used by nobody else.
        unsafe {
            (&raw mut (*place.as_ptr()).mark).write_volatile(0);
            drop(Box::from_raw(place.as_ptr()));
        }
        Ok(())
    })
}

/// # Safety
/// `expiry` is null or what a callback was handed that has not returned.
unsafe fn expiry<'a>(expiry: *mut ClockExpiry) -> Outcome<&'a mut ClockFired<'static>> {
    // SAFETY: as promised.
    match unsafe { expiry.as_ref() } {
        // SAFETY: good until the callback returns; there is no other reference, as each entry lets
        // its own go.
        Some(ClockExpiry { fired }) => Ok(unsafe { &mut *fired.as_ptr() }),
        None => Err(failure(Status::NullPointer, "the pointer to the expiry is null")),
    }
}

/// What the timer was armed for, and what its own clock shows; null where it is not wanted. The
/// deadline is on its own clock, but on the timers' clock if it was armed for a duration on
/// realtime.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fired` was handed to a callback that has not returned, on this thread; the rest can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_info(
    fired: *mut ClockExpiry,
    deadline_ns: *mut u64,
    now_ns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let fired = unsafe { expiry(fired) }?;
        // SAFETY: as promised.
        unsafe {
            put(deadline_ns, fired.deadline().as_nanos());
            if !now_ns.is_null() {
                put(now_ns, fired.now().as_nanos());
            }
        }
        Ok(())
    })
}

/// Has the timer armed again, `after_ns` from now, when the callback is over; as
/// `tickless_fired_restart`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`.
///
/// # Safety
/// `fired` is as for `tickless_clock_fired_info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_restart(
    fired: *mut ClockExpiry,
    after_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { expiry(fired) }?.restart(duration(after_ns)?);
        Ok(())
    })
}

/// The same for a point in time on its own clock.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fired` is as for `tickless_clock_fired_info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_restart_at(
    fired: *mut ClockExpiry,
    deadline_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { expiry(fired) }?.restart_at(Instant::from_nanos(deadline_ns));
        Ok(())
    })
}

/// The same whole periods of its own clock after its own deadline, at the first such moment that
/// has not passed. `overruns`, which may be null, receives how many were missed. When the clock
/// goes back nothing fires until it has come up to the next moment.
///
/// Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the period is not positive.
///
/// # Safety
/// `fired` is as for `tickless_clock_fired_info`; `overruns` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_clock_fired_forward(
    fired: *mut ClockExpiry,
    period_ns: i64,
    overruns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let fired = unsafe { expiry(fired) }?;
        let missed = fired.forward(crate::timers::period(period_ns)?).saturating_sub(1);
        // SAFETY: as promised.
        unsafe { put(overruns, missed) };
        Ok(())
    })
}
