//! Sleeping until a word changes: futexes, private to the process.

use core::num::NonZeroU32;
use core::sync::atomic::AtomicU32;
use rustix::thread::futex;
use rustix::time::Timespec;
use tickless_core::time::Ns;

/// Sleeps while the word holds this value, until this time on `CLOCK_MONOTONIC` at most, or
/// shorter: woken, timed out, interrupted, changed in between, each means look again.
pub fn wait(word: &AtomicU32, value: u32, until: Ns) {
    let timeout = (until != Ns::NEVER).then_some(Timespec {
        tv_sec: (until.0 / 1_000_000_000) as i64,
        tv_nsec: (until.0 % 1_000_000_000) as _,
    });
    let private = futex::Flags::PRIVATE;
    let _ = futex::wait_bitset(word, private, value, timeout.as_ref(), NonZeroU32::MAX);
}

/// Wakes one that sleeps on the word. Nobody to wake is not a failure.
pub fn wake_one(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

/// Wakes everybody who sleeps on the word.
pub fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}
