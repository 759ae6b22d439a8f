//! Sleeping until a word changes: where a synchronous cancel waits for a callback (X7). Words that
//! are parked on count up.

use crate::platform::wait;
use core::sync::atomic::AtomicU64;

/// Sleeps while the word holds this value, or shorter.
pub fn park(word: &AtomicU64, value: u64) {
    wait::wait_wide(word, value);
}

/// Wakes everybody who sleeps on the word.
pub fn unpark(word: &AtomicU64) {
    wait::wake_wide(word);
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
