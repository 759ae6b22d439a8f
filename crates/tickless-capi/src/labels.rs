//! Whose timers are whose: labels, and the list of what is pending.

use crate::local_batches::row;
use crate::periodic::PeriodicStorage;
use crate::status::{Outcome, Status, entry, failure, put};
use crate::timer::TimerStorage;
use crate::timers::{TimerSet, set};
use core::ffi::{CStr, c_char};
use std::collections::BTreeSet;
use tickless::slots::ProcessLock;

/// Labels are kept for good; there are few different ones. A forked child begins without any,
/// because another thread may have held the lock at the fork (K4).
static KEPT: ProcessLock<BTreeSet<&'static str>> = ProcessLock::new(BTreeSet::new());

const LABELS_MAX: usize = 65_536;

/// A caller's label, as it is kept.
///
/// # Safety
/// `label` is null or leads to a text with a zero at its end.
unsafe fn kept(label: *const c_char) -> Outcome<&'static str> {
    if label.is_null() {
        return Err(failure(Status::NullPointer, "the label is null"));
    }
    // SAFETY: as promised.
    let Ok(text) = unsafe { CStr::from_ptr(label) }.to_str() else {
        return Err(failure(Status::Unsupported, "a label is UTF-8"));
    };
    let mut kept = KEPT.lock();
    if let Some(known) = kept.get(text) {
        return Ok(known);
    }
    if kept.len() >= LABELS_MAX {
        let what = "there are 65,536 different labels; name kinds of timers, not single ones";
        return Err(failure(Status::Full, what));
    }
    let known: &'static str = Box::leak(text.into());
    kept.insert(known);
    Ok(known)
}

/// Names a timer for `tickless_timers_list`: "http idle", say. Takes a lock, and allocates. The
/// library keeps a copy of each different text, for good: name kinds of timers, not single ones.
///
/// Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_UNSUPPORTED` if it is not UTF-8; `TICKLESS_FULL`
/// after 65,536 different ones; and those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `label` to a text with a zero at its
/// end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_label(
    timer: *const TimerStorage,
    label: *const c_char,
) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { crate::timer::set_label(timer, kept(label)?) })
}

/// The same for a periodic timer.
///
/// Errors: as `tickless_timer_label`.
///
/// # Safety
/// As for `tickless_timer_label`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_label(
    timer: *const PeriodicStorage,
    label: *const c_char,
) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { crate::periodic::set_label(timer, kept(label)?) })
}

/// Writes a text for people into `text`, which has room for `room` bytes: every pending timer, base
/// by base, with whose it is and when it is due. It is cut where the room ends, and ends with a
/// zero unless there is no room at all. `needed`, which may be null, receives how many bytes all of
/// it takes, the zero included. O(pending), each base held up for at most 64 timers at a time.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `text` leads to `room` bytes that
/// can be written; `needed` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_list(
    timers: *const TimerSet,
    text: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let set = unsafe { set(timers) }?;
        // SAFETY: as promised; what stands there is not looked at.
        unsafe { row(text.cast::<core::mem::MaybeUninit<c_char>>(), room) }?;
        let list = set.timers.timer_list().to_string();
        let cut = list.floor_char_boundary(room.saturating_sub(1));
        if room > 0 {
            // SAFETY: there is room for that many and a zero.
            unsafe {
                core::ptr::copy_nonoverlapping(list.as_ptr(), text.cast::<u8>(), cut);
                text.add(cut).write(0);
            }
        }
        // SAFETY: as promised.
        unsafe { put(needed, list.len() + 1) };
        Ok(())
    })
}
