//! Labels (texts by which a program tells its timers apart), and the list of pending timers.

use crate::local_batches::caller_slice;
use crate::object::{on, optional_result_of};
use crate::periodic::PeriodicStorage;
use crate::status::{Outcome, Status, failure};
use crate::timer::{Any, TimerStorage};
use crate::timers::TimerSet;
use core::ffi::{CStr, c_char};
use std::collections::BTreeSet;
use tickless::slots::ProcessLock;

// One copy of each text that was used as a label. Copies are never freed, because a program has few
// different labels. A forked child starts with an empty set and its own lock, because a thread of
// the parent can have held the lock at the fork (K4: a child waits for no lock).
static LABELS: ProcessLock<BTreeSet<&'static str>> = ProcessLock::new(BTreeSet::new());

const LABELS_MAX: usize = 65_536;

/// Returns the library's copy of a caller's label. Makes the copy when a text is first used.
///
/// # Safety
/// `label` is null or points to a zero-terminated text.
unsafe fn intern(label: *const c_char) -> Outcome<&'static str> {
    if label.is_null() {
        return Err(failure(Status::NullPointer, "the label is null"));
    }
    // SAFETY: the caller promises that `label` points to a zero-terminated text.
    let Ok(text) = unsafe { CStr::from_ptr(label) }.to_str() else {
        return Err(failure(Status::Unsupported, "the label is not UTF-8"));
    };
    let mut labels = LABELS.lock();
    if let Some(known) = labels.get(text) {
        return Ok(known);
    }
    if labels.len() >= LABELS_MAX {
        let what = "there are 65,536 different labels; label kinds of timers, not single ones";
        return Err(failure(Status::Full, what));
    }
    let known: &'static str = Box::leak(text.into());
    labels.insert(known);
    Ok(known)
}

/// Gives a timer the label that `tickless_timers_list` shows, for example "http idle". Takes a
/// lock, and allocates. The library keeps a copy of each different text until the process ends, so
/// label kinds of timers, not single ones.
///
/// Errors: `TICKLESS_UNSUPPORTED` if the label is not UTF-8; `TICKLESS_FULL` after 65,536 different
/// labels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_label(
    timer: *const TimerStorage,
    label: *const c_char,
) -> Status {
    on(timer, |timer| intern(label).map(|label| Any::relabel(timer, label)))
}

/// Labels a periodic timer, as `tickless_timer_label` does.
///
/// Errors: those of `tickless_timer_label`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_label(
    timer: *const PeriodicStorage,
    label: *const c_char,
) -> Status {
    on(timer, |timer| intern(label).map(|label| timer.relabel(label)))
}

/// Writes a human-readable list of every pending timer, base by base, with its label and its
/// deadline, into `text`, which has room for `room` bytes. The list is cut off where the room ends,
/// and ends with a zero unless `room` is 0. `needed`, which may be null, receives the number of
/// bytes of the whole list, with the zero. It can be longer in the next call, because timers are
/// armed and time passes: to get all of it, repeat the call with more room while `needed > room`.
/// O(n) for n pending timers; holds the lock of a base for at most 64 timers at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_list(
    timers: *const TimerSet,
    text: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    optional_result_of(timers, needed, |set| {
        caller_slice(text.cast::<core::mem::MaybeUninit<c_char>>(), room)?;
        let list = set.timers.timer_list().to_string();
        let mut cut = list.len().min(room.saturating_sub(1));
        while !list.is_char_boundary(cut) {
            cut -= 1;
        }
        if room > 0 {
            core::ptr::copy_nonoverlapping(list.as_ptr(), text.cast::<u8>(), cut);
            text.add(cut).write(0);
        }
        Ok(list.len() + 1)
    })
}
