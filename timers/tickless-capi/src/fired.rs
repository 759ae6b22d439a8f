//! What a callback can read about its expiry, and what it can request.

use crate::annotate;
use crate::object::{Object, on, optional_result_of, result_of};
use crate::status::{Outcome, Status, failure, null_callback, write_optional};
use crate::timers::{duration, period};
use core::ffi::c_void;
use core::ptr::NonNull;
use tickless::slots::OnFired;
use tickless::time::Instant;

/// The expiry of a timer, as the timer's callback sees it. Opaque; valid until the callback
/// returns, in the thread that runs it. The expiry stays valid after the callback has destroyed its
/// timer, but requests are ignored then.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    fired: NonNull<tickless::Fired<'static>>,
    overruns: u64,
}

/// The callback of a timer, called with the `data` that the timer was initialised with.
///
/// A thread of the library calls it, one callback at a time for each base (a part of the timers
/// with a thread of its own). A callback should be short: while it runs, the other timers of its
/// base wait, but not those of other bases. It must return: leaving it by `longjmp`, `pthread_exit`
/// or thread cancellation is undefined. A C++ exception that leaves it aborts the process.
pub type Callback = Option<unsafe extern "C-unwind" fn(fired: *mut Expiry, data: *mut c_void)>;

/// A C callback and the `data` pointer that it receives. `E` is the expiry that it can use.
#[derive(Clone, Copy)]
pub(crate) struct CCallback<E> {
    callback: unsafe extern "C-unwind" fn(*mut E, *mut c_void),
    data: *mut c_void,
}

// SAFETY: the header documents that callbacks run on threads of the library, so the caller passes
// data that those threads may use.
unsafe impl<E> Send for CCallback<E> {}
// SAFETY: as for `Send`; the fields are never modified.
unsafe impl<E> Sync for CCallback<E> {}

impl<E> CCallback<E> {
    pub(crate) fn new(
        callback: Option<unsafe extern "C-unwind" fn(*mut E, *mut c_void)>,
        data: *mut c_void,
    ) -> Outcome<CCallback<E>> {
        match callback {
            Some(callback) => Ok(CCallback { callback, data }),
            None => Err(null_callback()),
        }
    }

    pub(crate) fn call(self, mut expiry: E) {
        annotate::acquire();
        // SAFETY: C passed a function of this type, as the header requires; the expiry lives until
        // the function returns.
        unsafe { (self.callback)(&raw mut expiry, self.data) }
        annotate::release();
    }
}

impl OnFired for CCallback<Expiry> {
    fn fired(self, fired: &mut tickless::Fired<'_>) {
        let overruns = fired.overruns();
        self.call(Expiry { fired: NonNull::from(fired).cast(), overruns });
    }
}

/// A C function borrows the Rust expiry for one call, and gets the number of expiries that a
/// periodic timer has missed.
impl Object for Expiry {
    type Lent<'a> = (&'a mut tickless::Fired<'static>, u64);

    unsafe fn lend<'a>(expiry: *const Expiry) -> Outcome<Self::Lent<'a>> {
        // SAFETY: as for this function; this is the only reference.
        unsafe { running(expiry).map(|it| (&mut *it.fired.as_ptr(), it.overruns)) }
    }
}

/// Returns the expiry that C passed. The pointer in it is valid until the callback returns. Each C
/// function makes at most one reference from the pointer, and drops it before the function returns.
///
/// # Safety
/// `expiry` is null or the argument of a callback that has not returned.
pub(crate) unsafe fn running<E: Copy>(expiry: *const E) -> Outcome<E> {
    // SAFETY: as for this function.
    match unsafe { expiry.as_ref() } {
        Some(expiry) => Ok(*expiry),
        None => Err(failure(Status::NullPointer, "the pointer to the expiry is null")),
    }
}

/// Reads the details of an expiry: the deadline that the timer was armed with, when it was found to
/// be due (never before the deadline), on which base, and for a periodic timer how many expiries
/// were missed (with `TICKLESS_BURST`: how many are still to be made up for). Pass null for results
/// that are not needed. Reads no clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_info(
    fired: *mut Expiry,
    deadline_ns: *mut u64,
    found_ns: *mut u64,
    base: *mut u32,
    overruns: *mut u64,
) -> Status {
    on(fired, |(fired, missed)| {
        write_optional(deadline_ns, fired.deadline().as_nanos());
        write_optional(found_ns, fired.found_at().as_nanos());
        write_optional(base, u32::from(fired.base().0));
        write_optional(overruns, missed);
        Ok(())
    })
}

/// Reads the current time, in nanoseconds, from the clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_now(fired: *mut Expiry, now_ns: *mut u64) -> Status {
    result_of(fired, now_ns, |(fired, _)| Ok(fired.now().as_nanos()))
}

/// Requests that the timer be armed again, `after_ns` from now, when the callback has returned.
/// Cheaper than starting the timer by its handle. If another thread arms the timer while the
/// callback runs, that arming has precedence. The last of several requests counts. Reads the clock.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_restart(fired: *mut Expiry, after_ns: i64) -> Status {
    on(fired, |(fired, _)| duration(after_ns).map(|after| fired.restart(after)))
}

/// Requests that the timer be armed again for a window between two points in time. A coarse timer
/// uses the first as its deadline.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_restart_range(
    fired: *mut Expiry,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    on(fired, |(fired, _)| {
        window(soft_ns, hard_ns).map(|(soft, hard)| fired.restart_range(soft, hard))
    })
}

pub(crate) fn window(soft_ns: u64, hard_ns: u64) -> Outcome<(Instant, Instant)> {
    if hard_ns < soft_ns {
        return Err(failure(Status::OutOfRange, "the window ends before it begins"));
    }
    Ok((Instant::from_nanos(soft_ns), Instant::from_nanos(hard_ns)))
}

/// Requests that the timer be armed again a whole number of periods after its own deadline, so that
/// it does not drift: at the first such time that has not passed. `overruns`, which may be null,
/// receives how many expiries were missed, 0 if none. Reads the clock. Periodic timers do this by
/// themselves.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_forward(
    fired: *mut Expiry,
    period_ns: i64,
    overruns: *mut u64,
) -> Status {
    optional_result_of(fired, overruns, |(fired, _)| {
        Ok(fired.forward(period(period_ns)?).saturating_sub(1))
    })
}

/// Withdraws the callback's request, so that the timer stays idle. Stops a periodic timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fired_stop(fired: *mut Expiry) -> Status {
    on(fired, |(fired, _)| {
        fired.stop();
        Ok(())
    })
}
