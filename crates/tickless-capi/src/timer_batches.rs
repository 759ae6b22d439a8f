//! Operations on many timers at a time, for programs that handle events in batches.

use crate::local_batches::caller_slice;
use crate::object::Object;
use crate::status::{Outcome, Status, entry, write_optional};
use crate::timer::{Any, TimerStorage, either, start_from};
use core::mem::ManuallyDrop;
use tickless::callback::Cancel;
use tickless::slots::prefetch_at;

/// A timer, and how long after the current time it is to fire.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerArming {
    /// The timer.
    pub timer: *const TimerStorage,
    /// The duration, in nanoseconds.
    pub after_ns: i64,
}

/// How many timers ahead the memory is prefetched.
const AHEAD: usize = 8;

/// Runs `act` on one timer after the other until it fails, and prefetches those that follow. Writes
/// to `place` for how many `act` returned true.
///
/// # Safety
/// As for [`Object::lend`], for each timer; `place` is null or writable.
unsafe fn each<T>(
    items: &[T],
    timer: impl Fn(&T) -> *const TimerStorage,
    place: *mut usize,
    act: impl Fn(&T, ManuallyDrop<Any>) -> Outcome<bool>,
) -> Outcome {
    let (mut counted, mut result) = (0, Ok(()));
    for (nth, item) in items.iter().enumerate() {
        if let Some(ahead) = items.get(nth + AHEAD).map(&timer) {
            // A push-out uses the first two cache lines of the storage.
            prefetch_at(ahead);
            prefetch_at(ahead.wrapping_byte_add(64));
        }
        // SAFETY: as for this function.
        match unsafe { TimerStorage::lend(timer(item)) }.and_then(|any| act(item, any)) {
            Ok(counts) => counted += usize::from(counts),
            Err(status) => {
                result = Err(status);
                break;
            }
        }
    }
    // SAFETY: the caller promises that `place` is null or writable.
    unsafe { write_optional(place, counted) };
    result
}

/// Arms or rearms many timers, each as `tickless_timer_start_from` does, from one reading of the
/// clock. Faster than one call for each timer, because the next timers are prefetched. `armed`,
/// which may be null, receives how many timers were armed; after an error, these are the first
/// ones, and the next one caused the error.
///
/// Errors: those of `tickless_timer_start_from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_many(
    now_ns: u64,
    armings: *const TimerArming,
    count: usize,
    armed: *mut usize,
) -> Status {
    entry(|| {
        let act =
            |arming: &TimerArming, any| start_from(any, now_ns, arming.after_ns).map(|()| true);
        each(caller_slice(armings, count)?, |arming| arming.timer, armed, act)
    })
}

/// Cancels many timers, each as `tickless_timer_cancel` does. `cancelled`, which may be null,
/// receives how many were pending. After an error, the timers behind the one that caused it have
/// not been cancelled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel_many(
    timers: *const *const TimerStorage,
    count: usize,
    cancelled: *mut usize,
) -> Status {
    entry(|| {
        let act = |_: &_, any| Ok(either!(any, timer => timer.cancel()) == Cancel::Pending);
        each(caller_slice(timers, count)?, |timer| *timer, cancelled, act)
    })
}
