//! Notes on single timers: labels, and where timers were armed.
//!
//! Most timers have no notes, so the notes are not in the timers, but in a table by the timers'
//! addresses. In a set that never had a note, the table costs one load when a timer is dropped.
//! When a timer is ended, its notes are removed before another timer can get its address.

use crate::platform::locked::locked;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

static LABELS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The label of the future that this thread polls. Has no destructor.
    static LABEL: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Calls `poll`. The timers that this thread arms during the call get this label.
pub(crate) fn labelling<R>(label: &'static str, poll: impl FnOnce() -> R) -> R {
    /// Restores the label of the outer future, also when `poll` panics.
    struct Restore(Option<&'static str>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LABEL.set(self.0);
        }
    }
    // Relaxed: only this thread reads the flag for this future, when it arms the future's timers.
    LABELS.store(true, Ordering::Relaxed);
    let _restore = Restore(LABEL.replace(Some(label)));
    poll()
}

#[inline]
pub(super) fn polled_label() -> Option<&'static str> {
    if LABELS.load(Ordering::Relaxed) { LABEL.get() } else { None }
}

#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// `None` in a set that never had a note.
    notes: OnceLock<Box<Mutex<HashMap<usize, Note>>>>,
    #[cfg(debug_assertions)]
    armings: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Note {
    pub(crate) label: Option<&'static str>,
    pub(crate) armed_at: Option<&'static Location<'static>>,
}

impl Notes {
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(crate) fn new(armings: bool) -> Notes {
        // Release builds do not use it.
        let _ = armings;
        Notes {
            #[cfg(debug_assertions)]
            armings,
            ..Notes::default()
        }
    }

    pub(crate) fn label(&self, timer: usize, label: &'static str) {
        self.change(timer, |note| note.label = Some(label));
    }

    /// Notes where a timer was armed. The timer must not be freed until this returns.
    #[cfg(debug_assertions)]
    pub(crate) fn armed(&self, timer: usize, at: &'static Location<'static>) {
        if self.armings {
            self.change(timer, |note| note.armed_at = Some(at));
        }
    }

    pub(crate) fn of(&self, timer: usize) -> Note {
        self.hold().of(timer)
    }

    /// Locks the table: a timer that is found alive now keeps its notes until the guard is dropped.
    pub(crate) fn hold(&self) -> HeldNotes<'_> {
        HeldNotes(self.notes.get().map(|notes| locked(notes)))
    }

    /// Removes the notes on a timer, whose address can be used again. Returns its label.
    #[inline]
    pub(crate) fn forget(&self, timer: usize) -> Option<&'static str> {
        if self.notes.get().is_some() { self.remove(timer) } else { None }
    }

    #[cold]
    fn remove(&self, timer: usize) -> Option<&'static str> {
        locked(self.notes.get()?).remove(&timer)?.label
    }

    fn change(&self, timer: usize, change: impl FnOnce(&mut Note)) {
        change(locked(self.notes.get_or_init(Box::default)).entry(timer).or_default());
    }
}

/// The table of notes, locked; `None` in a set that had no notes when it was locked.
pub(crate) struct HeldNotes<'a>(Option<MutexGuard<'a, HashMap<usize, Note>>>);

impl HeldNotes<'_> {
    pub(crate) fn of(&self, timer: usize) -> Note {
        self.0.as_ref().and_then(|notes| notes.get(&timer)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: X4 (identity is not the address).
    #[test]
    fn held_notes_do_not_change() {
        let notes = Notes::new(false);
        notes.label(64, "old");
        std::thread::scope(|scope| {
            let held = notes.hold();
            let other = scope.spawn(|| {
                assert_eq!(notes.forget(64), Some("old"));
                notes.label(64, "new");
            });
            for _ in 0..100 {
                std::thread::yield_now();
                assert_eq!(held.of(64).label, Some("old"));
            }
            drop(held);
            assert!(other.join().is_ok());
        });
        assert_eq!((notes.of(64).label, notes.of(128).label), (Some("new"), None));
    }
}
