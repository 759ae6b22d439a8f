//! Clean-up when a signal ends the program at once.
//!
//! A program that exits runs no destructors of other threads. Code that makes something outside of
//! the process registers a function here that removes it, and the signal handler's thread calls
//! [`clean`] before it exits.

use std::sync::{Mutex, PoisonError};

static CLEANERS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Registers a function to be called before a signal ends the program. It must not wait for
/// threads.
pub fn clean_by(cleaner: fn()) {
    let mut cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !cleaners.iter().any(|&known| std::ptr::fn_addr_eq(known, cleaner)) {
        cleaners.push(cleaner);
    }
}

/// Calls the registered functions, the latest first. The program must exit right after it.
pub fn clean() {
    let cleaners = CLEANERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    cleaners.iter().rev().for_each(|cleaner| cleaner());
}
