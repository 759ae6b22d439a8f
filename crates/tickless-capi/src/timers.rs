//! Sets of timers: starting and stopping them, their clock.

use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, answer, entry, failure};
use core::ptr::NonNull;
use std::time::Duration;
use tickless::driver::StartTimersError;
use tickless::{VirtualTime, slots};

/// Later than every deadline: a timer armed for this never fires.
pub const TICKLESS_NEVER: u64 = u64::MAX;

/// A set of timers: a base and a driver thread for each CPU. Opaque.
///
/// May be used from all threads. In the child of a fork its timers count as shut down: nothing
/// fires, arming is `TICKLESS_SHUT`, a cancel finds nothing, and destroying and stopping wait for
/// nothing. A child may start timers of its own. A callback that forks must not return in the
/// child.
pub struct TimerSet {
    mark: u64,
    pub(crate) timers: tickless::Timers,
    /// What moves their clock, if they are on a virtual one.
    pub(crate) time: Option<VirtualTime>,
    /// How many users they have that are the library's own.
    own_users: usize,
}

impl TimerSet {
    /// How many timers and limiters there are. Waits a little for those whose last callback is just
    /// ending: a limiter that was destroyed during its refill goes with that.
    #[expect(clippy::disallowed_methods, reason = "nothing tells when a callback's user goes")]
    fn users(&self) -> usize {
        let users = || slots::users(&self.timers).saturating_sub(self.own_users);
        for _ in 0..PATIENCE_MS {
            if users() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        users()
    }

    /// Timers for C, which stops them.
    pub(crate) fn hand_out(timers: tickless::Timers) -> *mut TimerSet {
        TimerSet::with_time(timers, None)
    }

    /// The same with what moves their clock.
    pub(crate) fn with_time(timers: tickless::Timers, time: Option<VirtualTime>) -> *mut TimerSet {
        let own_users = slots::users(&timers);
        Box::into_raw(Box::new(TimerSet { mark: MARK, timers, time, own_users }))
    }
}

const PATIENCE_MS: u32 = 100;

const MARK: u64 = 0x7469_636b_6c65_7373;

/// A set behind a caller's pointer.
///
/// # Safety
/// `set` is null or leads to something that is readable for as long as the result is used.
pub(crate) unsafe fn set<'a>(set: *const TimerSet) -> Outcome<&'a TimerSet> {
    let name = "timers; pass what tickless_timers_start handed out";
    // SAFETY: as promised.
    let known = unsafe { handed_out(set, name) }?;
    if known.mark == MARK { Ok(known) } else { Err(none_here(name)) }
}

/// What stands behind a pointer that the library once handed out, as far as one can see.
///
/// # Safety
/// As for [`set`].
pub(crate) unsafe fn handed_out<'a, T>(at: *const T, name: &str) -> Outcome<&'a T> {
    if !at.is_aligned() {
        return Err(none_here(name));
    }
    // SAFETY: as promised.
    match unsafe { at.as_ref() } {
        Some(known) => Ok(known),
        None => Err(failure(Status::NullPointer, format_args!("null is no {name}"))),
    }
}

#[cold]
pub(crate) fn none_here(name: &str) -> Status {
    failure(Status::NotInitialised, format_args!("here are no {name}"))
}

/// A duration that a caller passed.
pub(crate) fn duration(ns: i64) -> Outcome<Duration> {
    match u64::try_from(ns) {
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(_) => {
            Err(failure(Status::OutOfRange, format_args!("{ns} ns is negative; pass 0 or more")))
        }
    }
}

/// A period that a caller passed.
pub(crate) fn period(ns: i64) -> Outcome<Duration> {
    match duration(ns)? {
        Duration::ZERO => Err(failure(Status::OutOfRange, "a period of zero; pass at least 1 ns")),
        period => Ok(period),
    }
}

/// Starts timers. `options` may be null for the defaults; `timers` receives them. Blocks for
/// about a millisecond, to calibrate the clock. Its threads inherit the caller's signal mask.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`,
/// `TICKLESS_NO_THREAD`.
///
/// # Safety
/// `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start(
    options: *const Options,
    timers: *mut *mut TimerSet,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(timers, core::ptr::null_mut()) }?;
        // SAFETY: as promised.
        let builder = unsafe { sized::read(options) }?.builder()?;
        let started =
            builder.start().map_err(|error: StartTimersError| failure(Status::NoThread, error))?;
        // SAFETY: as promised.
        unsafe { answer(timers, TimerSet::hand_out(started)) }
    })
}

/// Stops timers and frees them; null is nothing to do. Waits until the driver threads have ended.
///
/// Errors: `TICKLESS_BUSY` as long as one of their timers is initialised, or a limiter or throttle
/// on them is there: destroy those first. (It takes 100 ms to say so.)
/// `TICKLESS_WOULD_DEADLOCK` inside a callback of theirs. After an error they run on.
///
/// # Safety
/// `timers` is null or came from `tickless_timers_start` and was not stopped; no other thread
/// uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_stop(timers: *mut TimerSet) -> Status {
    entry(|| {
        let Some(place) = NonNull::new(timers) else { return Ok(()) };
        // SAFETY: as promised.
        let set = unsafe { set(timers) }?;
        if slots::is_in_callback_of(&set.timers) {
            let what = "timers cannot be stopped in a callback of theirs, which would wait for \
                        itself; do it in another thread";
            return Err(failure(Status::WouldDeadlock, what));
        }
        let users = set.users();
        if users > 0 {
            let what = format_args!(
                "{users} timers, limiters or throttles are still there; destroy them first"
            );
            return Err(failure(Status::Busy, what));
        }
        // SAFETY: it came from `Box::into_raw`, and is used by nobody else. The mark goes first,
        // so that a second stop is noticed if the memory is not used again at once.
        unsafe {
            (&raw mut (*place.as_ptr()).mark).write_volatile(0);
            drop(Box::from_raw(place.as_ptr()));
        }
        Ok(())
    })
}

/// The present, in nanoseconds, on the clock that deadlines are given in. It never goes back, is
/// close to `CLOCK_MONOTONIC`, and stands still while the system is suspended. Costs about 11 ns
/// where the CPU's counter can be trusted; no lock, no system call.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `timers` came from `tickless_timers_start` and was not stopped; `now_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_now(timers: *const TimerSet, now_ns: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let set = unsafe { set(timers) }?;
        // SAFETY: as promised.
        unsafe { answer(now_ns, set.timers.now().as_nanos()) }
    })
}
