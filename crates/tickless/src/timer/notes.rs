//! What is known of single timers beside their memory: labels, and where they were armed.
//!
//! A timer's cache line has no room for either, and most timers need neither: their callback's
//! type says whose they are. So notes are kept in a table by the timer's address, and who has
//! none pays one load when a timer is dropped.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Has any future ever had a label?
static LABELS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The label of the future that this thread polls. Has no destructor.
    static LABEL: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Polls a future whose timers have this label.
pub(crate) fn labelling<R>(label: &'static str, poll: impl FnOnce() -> R) -> R {
    /// Also when it panics.
    struct Back(Option<&'static str>);
    impl Drop for Back {
        fn drop(&mut self) {
            LABEL.set(self.0);
        }
    }
    // Relaxed: this thread sees it, and only a timer that this thread arms wants to know.
    LABELS.store(true, Ordering::Relaxed);
    let _back = Back(LABEL.replace(Some(label)));
    poll()
}

/// The label of the future that this thread polls.
#[inline]
pub(super) fn polled_label() -> Option<&'static str> {
    if LABELS.load(Ordering::Relaxed) { LABEL.get() } else { None }
}

/// The notes about the timers of a set.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Has there ever been one?
    any: AtomicBool,
    notes: Mutex<HashMap<usize, Note>>,
    /// Is the place noted where a timer was armed?
    #[cfg(debug_assertions)]
    armings: bool,
}

/// What is noted about a timer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Note {
    pub(crate) label: Option<&'static str>,
    pub(crate) armed_at: Option<&'static Location<'static>>,
}

impl Notes {
    /// No notes; places where timers are armed will be noted if `armings` says so, and the
    /// program was built for debugging.
    #[expect(clippy::fn_params_excessive_bools, reason = "one caller, which has just asked")]
    pub(crate) fn new(armings: bool) -> Notes {
        // Built for release nobody asks.
        let _ = armings;
        Notes {
            #[cfg(debug_assertions)]
            armings,
            ..Notes::default()
        }
    }

    /// Gives a timer a label.
    pub(crate) fn label(&self, timer: usize, label: &'static str) {
        self.change(timer, |note| note.label = Some(label));
    }

    /// A timer that its caller keeps where it is was armed there.
    #[cfg(debug_assertions)]
    pub(crate) fn armed(&self, timer: usize, at: &'static Location<'static>) {
        if self.armings {
            self.change(timer, |note| note.armed_at = Some(at));
        }
    }

    /// What is known of a timer.
    pub(crate) fn of(&self, timer: usize) -> Note {
        // Relaxed: only who knows of the note by other means must find it.
        if !self.any.load(Ordering::Relaxed) {
            return Note::default();
        }
        self.notes().get(&timer).copied().unwrap_or_default()
    }

    /// The timer is about to give its address up.
    #[inline]
    pub(crate) fn forget(&self, timer: usize) {
        if self.any.load(Ordering::Relaxed) {
            self.remove(timer);
        }
    }

    #[cold]
    fn remove(&self, timer: usize) {
        self.notes().remove(&timer);
    }

    fn change(&self, timer: usize, change: impl FnOnce(&mut Note)) {
        self.any.store(true, Ordering::Relaxed);
        change(self.notes().entry(timer).or_default());
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<usize, Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
