//! Sleeping until a word changes: where a synchronous cancel waits for a callback (X7).
//!
//! A futex of the word's lower half, which changes whenever the word does: words that are parked
//! on count up. Private to the process.

use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::thread::futex;

/// Sleeps while the word holds this value, or shorter.
pub fn park(word: &AtomicU64, value: u64) {
    // Woken, interrupted, changed in between: each means look again.
    let _ = futex::wait(lower_half(word), futex::Flags::PRIVATE, value as u32, None);
}

/// Wakes everybody who sleeps on the word.
pub fn unpark(word: &AtomicU64) {
    // Nobody to wake is not a failure.
    let _ = futex::wake(lower_half(word), futex::Flags::PRIVATE, i32::MAX as u32);
}

fn lower_half(word: &AtomicU64) -> &AtomicU32 {
    let offset = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: a half of a 64-bit word is a 32-bit word, aligned, and lives as long. Only the
    // kernel reads it, and nobody writes it by this reference.
    unsafe { &*core::ptr::from_ref(word).cast::<AtomicU32>().add(offset) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// Goal: who parks after the change does not sleep; who parks before it is woken.
    #[test]
    fn parks_only_while_nothing_changes() {
        let word = AtomicU64::new(u64::from(u32::MAX));
        let started = std::time::Instant::now();
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                while word.load(Ordering::Acquire) == u64::from(u32::MAX) {
                    park(&word, u64::from(u32::MAX));
                }
            });
            std::thread::yield_now();
            word.fetch_add(1, Ordering::Release);
            unpark(&word);
            assert!(sleeper.join().is_ok());
        });
        park(&word, 5);
        assert!(started.elapsed().as_millis() < 900, "somebody slept through");
    }
}
