//! Clean-up when a signal ends the program at once.
//!
//! A program that exits runs no destructors of other threads. So code that makes something which
//! outlives the process, such as a cgroup, registers a function here that removes it. The thread
//! that handles the signal calls [`clean`] before the program exits.

use std::sync::{Mutex, PoisonError};

static CLEANERS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Registers a function that [`clean`] calls before a signal ends the program. The function must
/// not wait for other threads: perhaps they never run again.
pub fn clean_by(cleaner: fn()) {
    let mut cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !cleaners.iter().any(|&known| std::ptr::fn_addr_eq(known, cleaner)) {
        cleaners.push(cleaner);
    }
}

/// Calls the registered functions in reverse order. The program must exit right after this call.
pub fn clean() {
    let cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    cleaners.iter().rev().for_each(|cleaner| cleaner());
}
