//! What a callback is told, and what it may ask for.

use crate::status::{Outcome, Status, answer, entry, failure, put};
use crate::timers::{duration, period};
use core::ffi::c_void;
use core::ptr::NonNull;
use tickless::periodic::PeriodFired;
use tickless::slots::{OnFired, OnPeriod};
use tickless::time::Instant;

/// A timer that fires, as its callback sees it. Opaque; good until the callback returns, and in
/// the thread that runs it. Also good after the callback has destroyed its timer: what it asks
/// for is ignored then.
pub struct Expiry {
    fired: NonNull<tickless::Fired<'static>>,
    overruns: u64,
}

/// What a timer calls when it fires, with the `data` that it was initialised with.
///
/// Runs on a thread of the library, one at a time per base. It should be short: it delays the
/// other timers of its base, and no others. It must return: `longjmp`, `pthread_exit` and thread
/// cancellation across it are undefined. A C++ exception that leaves it ends the process.
pub type Callback = Option<unsafe extern "C-unwind" fn(fired: *mut Expiry, data: *mut c_void)>;

/// A callback with its data, as it stands in a timer's slot.
#[derive(Clone, Copy)]
pub(crate) struct CallC {
    callback: unsafe extern "C-unwind" fn(*mut Expiry, *mut c_void),
    data: *mut c_void,
}

// SAFETY: the header says that callbacks run on threads of the library, so the data is meant to
// be used there.
unsafe impl Send for CallC {}
// SAFETY: as for `Send`; there is nothing to change.
unsafe impl Sync for CallC {}

impl CallC {
    pub(crate) fn new(callback: Callback, data: *mut c_void) -> Outcome<CallC> {
        match callback {
            Some(callback) => Ok(CallC { callback, data }),
            None => Err(failure(Status::NullPointer, "the callback is null")),
        }
    }

    fn call(self, fired: &mut tickless::Fired<'_>, overruns: u64) {
        let fired = NonNull::from(fired).cast::<tickless::Fired<'static>>();
        let mut expiry = Expiry { fired, overruns };
        // SAFETY: a function of this type, as the header asks for; the expiry is good until it
        // returns.
        unsafe { (self.callback)(&raw mut expiry, self.data) }
    }
}

impl OnFired for CallC {
    fn fired(self, fired: &mut tickless::Fired<'_>) {
        self.call(fired, 0);
    }
}

impl OnPeriod for CallC {
    fn period(self, period: &mut PeriodFired<'_, '_>) {
        let overruns = period.overruns();
        self.call(period, overruns);
    }
}

/// # Safety
/// `expiry` is null or what a callback was handed that has not returned.
unsafe fn expiry<'a>(expiry: *mut Expiry) -> Outcome<(&'a mut tickless::Fired<'static>, u64)> {
    // SAFETY: as promised.
    match unsafe { expiry.as_ref() } {
        Some(Expiry { fired, overruns }) => {
            // SAFETY: good until the callback returns; there is no other reference, as each entry
            // lets its own go.
            Ok((unsafe { &mut *fired.as_ptr() }, *overruns))
        }
        None => Err(failure(Status::NullPointer, "the pointer to the expiry is null")),
    }
}

/// Everything about an expiry; null where it is not wanted. The deadline that the timer was armed
/// with, when it was found to be due (never before the deadline), on which base, and for a
/// periodic timer how many expiries were missed (with `TICKLESS_BURST`: are still to be made up
/// for). No clock is read.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fired` was handed to a callback that has not returned, on this thread; the rest can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_info(
    fired: *mut Expiry,
    deadline_ns: *mut u64,
    found_ns: *mut u64,
    base: *mut u32,
    overruns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, missed) = unsafe { expiry(fired) }?;
        // SAFETY: as promised.
        unsafe {
            put(deadline_ns, fired.deadline().as_nanos());
            put(found_ns, fired.found_at().as_nanos());
            put(base, u32::from(fired.base().0));
            put(overruns, missed);
        }
        Ok(())
    })
}

/// The present, in nanoseconds. Reads the clock.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fired` is as for `tickless_fired_info`, and results can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_now(fired: *mut Expiry, now_ns: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, _) = unsafe { expiry(fired) }?;
        // SAFETY: as promised.
        unsafe { answer(now_ns, fired.now().as_nanos()) }
    })
}

/// Has the timer armed again, `after_ns` from now, when the callback is over. Cheaper than
/// starting it by its handle, and cannot collide with that: if somebody else has armed the timer
/// meanwhile, that stands. Of several requests the last one counts. Reads the clock.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`.
///
/// # Safety
/// `fired` is as for `tickless_fired_info`, and results can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_restart(fired: *mut Expiry, after_ns: i64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, _) = unsafe { expiry(fired) }?;
        fired.restart(duration(after_ns)?);
        Ok(())
    })
}

/// The same for a window between two points in time; a coarse timer takes the first.
///
/// Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.
///
/// # Safety
/// `fired` is as for `tickless_fired_info`, and results can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_restart_range(
    fired: *mut Expiry,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, _) = unsafe { expiry(fired) }?;
        let (soft, hard) = window(soft_ns, hard_ns)?;
        fired.restart_range(soft, hard);
        Ok(())
    })
}

/// A window that a caller passed.
pub(crate) fn window(soft_ns: u64, hard_ns: u64) -> Outcome<(Instant, Instant)> {
    if hard_ns < soft_ns {
        return Err(failure(Status::OutOfRange, "the window ends before it begins"));
    }
    Ok((Instant::from_nanos(soft_ns), Instant::from_nanos(hard_ns)))
}

/// Has the timer armed again whole periods after its own deadline, so that it does not drift: at
/// the first such moment that has not passed. `overruns`, which may be null, receives how many
/// expiries were missed: 0 if the callback kept up. Reads the clock. Not needed by periodic
/// timers, which do this by themselves.
///
/// Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the period is not positive.
///
/// # Safety
/// `fired` is as for `tickless_fired_info`, and results can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_forward(
    fired: *mut Expiry,
    period_ns: i64,
    overruns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, _) = unsafe { expiry(fired) }?;
        let missed = fired.forward(period(period_ns)?).saturating_sub(1);
        // SAFETY: as promised.
        unsafe { put(overruns, missed) };
        Ok(())
    })
}

/// Takes back what the callback asked for: the timer stays idle. Ends a periodic timer.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fired` is as for `tickless_fired_info`, and results can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_stop(fired: *mut Expiry) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (fired, _) = unsafe { expiry(fired) }?;
        fired.stop();
        Ok(())
    })
}
