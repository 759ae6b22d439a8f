//! What signals do to the program, and what has to be cleaned up when one ends it at once.
//!
//! A program that exits runs no destructors of other threads. Whoever makes something outside of
//! the process says here how it goes away again, and whoever ends the program cleans.

use nix::sys::signal::{SigSet, Signal};
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

/// Lets a terminal go away if whoever started the program wants that, as nohup does: handlers for
/// Ctrl-C also take hang-ups, and would end it. To be called before there are other threads.
pub fn respect_nohup() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores_hangup(&status) {
        let mut hangup = SigSet::empty();
        hangup.add(Signal::SIGHUP);
        // What is blocked stays pending, and does nothing.
        let _ = hangup.thread_block();
    }
}

fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal is the lowest bit.
    mask.is_some_and(|mask| mask >> (Signal::SIGHUP as i32 - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangups_are_the_lowest_bit() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\n") && !ignores_hangup(""));
    }
}
