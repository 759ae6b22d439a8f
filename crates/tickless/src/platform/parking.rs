//! How a thread that cancels a timer sleeps until the timer's callback has returned: it parks on a
//! counter, and is woken after the counter has changed.

use crate::platform::wait;
use core::sync::atomic::AtomicU32;
use tickless_core::time::Ns;

pub fn park(word: &AtomicU32, value: u32) {
    wait::wait(word, value, Ns::NEVER);
}

pub fn unpark(word: &AtomicU32) {
    wait::wake_all(word);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// Goal: a thread that parks before the change is woken, and a thread that parks after it does
    /// not sleep (X7: a waiting thread spins briefly, then sleeps).
    #[test]
    fn parks_only_while_nothing_changes() {
        let word = AtomicU32::new(u32::MAX);
        let started = std::time::Instant::now();
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                while word.load(Ordering::Acquire) == u32::MAX {
                    park(&word, u32::MAX);
                }
            });
            std::thread::yield_now();
            word.fetch_add(1, Ordering::Release);
            unpark(&word);
            assert!(sleeper.join().is_ok());
        });
        park(&word, 5);
        assert!(started.elapsed().as_millis() < 900, "a wakeup was lost");
    }
}
