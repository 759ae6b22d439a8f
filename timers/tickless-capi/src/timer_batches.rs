//! Operations on many timers at a time, for programs that handle events in batches.

use crate::local_batches::caller_slice;
use crate::status::{Outcome, Status, entry, write_optional};
use crate::timer::{CancelFound, TimerStorage, tickless_timer_cancel, tickless_timer_start_from};
use tickless::slots::prefetch_at;

/// A timer, and the duration after which it fires.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerArming {
    /// The timer.
    pub timer: *const TimerStorage,
    /// The duration, in nanoseconds, counted from the time that is passed with the batch.
    pub after_ns: i64,
}

/// How many timers ahead the memory is prefetched.
const AHEAD: usize = 8;

/// Calls `act` for one element after the other until `act` returns an error, and prefetches the
/// timers of the next elements. Writes to `place` for how many elements `act` returned true.
///
/// # Safety
/// `place` is null or writable.
unsafe fn each<T>(
    items: &[T],
    timer: impl Fn(&T) -> *const TimerStorage,
    place: *mut usize,
    act: impl Fn(&T) -> (Status, bool),
) -> Outcome {
    let (mut counted, mut result) = (0, Ok(()));
    for (nth, item) in items.iter().enumerate() {
        if let Some(ahead) = items.get(nth + AHEAD).map(&timer) {
            // A push-out uses the first two cache lines of the storage.
            prefetch_at(ahead);
            prefetch_at(ahead.wrapping_byte_add(64));
        }
        match act(item) {
            (Status::Ok, counts) => counted += usize::from(counts),
            (status, _) => {
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
        let start = |arming: &TimerArming| {
            (tickless_timer_start_from(arming.timer, now_ns, arming.after_ns), true)
        };
        each(caller_slice(armings, count)?, |arming| arming.timer, armed, start)
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
        let cancel = |timer: &*const TimerStorage| {
            let mut found = CancelFound::Idle;
            let status = tickless_timer_cancel(*timer, &raw mut found);
            (status, found == CancelFound::Pending)
        };
        each(caller_slice(timers, count)?, |timer| *timer, cancelled, cancel)
    })
}
