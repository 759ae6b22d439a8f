//! Sleeping until a word changes, by what the standard library has: a mutex and a condition
//! variable for each of a few dozen places, among which words are spread by their address.
//!
//! Who wakes wakes the whole place. Whoever is not meant looks again and lies down, which costs it
//! a little; words that are slept on are few: one for each driver thread.

use crate::platform::system_clock::system_now;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use tickless_core::time::Ns;

#[repr(align(128))]
struct Waiter {
    lock: Mutex<()>,
    changed: Condvar,
}

const PLACES: usize = 64;

fn place(word: &AtomicU32) -> &'static Waiter {
    static ALL: [Waiter; PLACES] =
        [const { Waiter { lock: Mutex::new(()), changed: Condvar::new() } }; PLACES];
    // The golden ratio, as Fibonacci hashing has it.
    let hash = (core::ptr::from_ref(word).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &ALL[(hash >> 58) as usize % PLACES]
}

fn sleep(place: &Waiter, is_same: impl FnOnce() -> bool, until: Ns) {
    let guard = place.lock.lock().unwrap_or_else(PoisonError::into_inner);
    // Under the lock: whoever changes the word after this finds the sleeper, as waking takes it.
    if !is_same() {
        return;
    }
    if until == Ns::NEVER {
        drop(place.changed.wait(guard));
        return;
    }
    let left = until - system_now();
    if !left.is_zero() {
        drop(place.changed.wait_timeout(guard, left));
    }
}

fn wake(place: &Waiter) {
    drop(place.lock.lock());
    place.changed.notify_all();
}

/// Sleeps while the word holds this value, until this time of [`system_now`] at most, or shorter:
/// woken, timed out, changed in between, each means look again.
pub fn wait(word: &AtomicU32, value: u32, until: Ns) {
    sleep(place(word), || word.load(Ordering::SeqCst) == value, until);
}

/// Wakes whoever sleeps on the word.
pub fn wake_one(word: &AtomicU32) {
    wake(place(word));
}

/// Wakes everybody who sleeps on the word.
pub fn wake_all(word: &AtomicU32) {
    wake(place(word));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: never early, and not by much late: what a condition variable does, and no more.
    #[test]
    fn sleeps_last_as_long_as_they_are_to() {
        let word = AtomicU32::new(7);
        for ms in [1, 3, 9] {
            let until = system_now().after(Ns::from_ms(ms));
            while system_now() < until {
                wait(&word, 7, until);
            }
        }
        // A word that has changed, and a time that has passed, are not slept for.
        wait(&word, 8, Ns::NEVER);
        wait(&word, 7, Ns::ZERO);
    }
}
