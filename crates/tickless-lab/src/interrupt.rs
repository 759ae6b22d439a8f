//! What has to be cleaned up when a signal ends the program at once.
//!
//! A program that exits runs no destructors of other threads. Whoever makes something outside of
//! the process says here how it goes away again, and whoever ends the program cleans.

use std::sync::{Mutex, PoisonError};

static CLEANERS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// From now on, this is called before a signal ends the program. It must not wait for threads.
pub fn clean_by(cleaner: fn()) {
    let mut cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !cleaners.iter().any(|&known| std::ptr::fn_addr_eq(known, cleaner)) {
        cleaners.push(cleaner);
    }
}

/// Cleans up, the latest first. The program is to end right after it.
pub fn clean() {
    let cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    cleaners.iter().rev().for_each(|cleaner| cleaner());
}
