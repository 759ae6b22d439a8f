//! Lets threads sleep until an atomic word changes, by futexes that are private to the process.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicU32;
use rustix::thread::futex;
use rustix::time::Timespec;
use tickless_core::time::Ns;

/// Sleeps while `word` has this value, but no longer than until the time `until` on
/// `CLOCK_MONOTONIC`. May return early, so the caller checks the word again.
pub fn wait(word: &AtomicU32, value: u32, until: Ns) {
    let timeout = (until != Ns::NEVER).then_some(Timespec {
        tv_sec: (until.0 / 1_000_000_000) as i64,
        tv_nsec: (until.0 % 1_000_000_000) as _,
    });
    let private = futex::Flags::PRIVATE;
    let _ = futex::wait_bitset(word, private, value, timeout.as_ref(), NonZeroU32::MAX);
}

/// Wakes one thread that sleeps on the word, if there is one. Costs a system call.
pub fn wake_one(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

/// Wakes all threads that sleep on the word. Costs a system call.
pub fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}
