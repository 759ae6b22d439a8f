//! Lets threads sleep until an atomic word changes, as a futex does, with the standard library
//! alone: the address of the word selects a slot with a mutex and a condition variable. A wakeup
//! wakes every thread that waits in the slot; those that wait for another word sleep again.

use crate::platform::system_clock::system_now;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use tickless_core::time::Ns;

#[repr(align(128))]
struct Slot {
    lock: Mutex<()>,
    changed: Condvar,
}

const SLOTS: usize = 64;

/// Returns the slot that the waiters of a word share with those of other words.
fn slot(word: &AtomicU32) -> &'static Slot {
    static ALL: [Slot; SLOTS] =
        [const { Slot { lock: Mutex::new(()), changed: Condvar::new() } }; SLOTS];
    // Fibonacci hashing: the factor is 2^64 divided by the golden ratio.
    let hash = (core::ptr::from_ref(word).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &ALL[(hash >> 58) as usize % SLOTS]
}

fn wake(slot: &Slot) {
    drop(slot.lock.lock());
    slot.changed.notify_all();
}

/// Sleeps while `word` has the value `value`, but no longer than until the time `until`.
pub fn wait(word: &AtomicU32, value: u32, until: Ns) {
    let slot = slot(word);
    // Check the word under the slot's mutex, which `wake` takes, too. So a wakeup that comes after
    // this check finds the thread asleep, and is not lost.
    let mut guard = slot.lock.lock().unwrap_or_else(PoisonError::into_inner);
    // A wakeup for another word of the slot must not end the wait: a driver takes the end of its
    // wait for an event of its own.
    while word.load(Ordering::SeqCst) == value {
        if until == Ns::NEVER {
            guard = slot.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let left = until - system_now();
        if left.is_zero() {
            return;
        }
        let woken = slot.changed.wait_timeout(guard, left);
        guard = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Wakes all threads in the word's slot, since the one that sleeps on the word is not known.
pub fn wake_one(word: &AtomicU32) {
    wake(slot(word));
}

/// Wakes all threads in the word's slot, and so all that sleep on the word.
pub fn wake_all(word: &AtomicU32) {
    wake(slot(word));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_reach_their_deadline() {
        let word = AtomicU32::new(7);
        for ms in [1, 3, 9] {
            let until = system_now().after(Ns::from_ms(ms));
            while system_now() < until {
                wait(&word, 7, until);
            }
        }
        // Both calls must return without sleeping.
        wait(&word, 8, Ns::NEVER);
        wait(&word, 7, Ns::ZERO);
    }

    #[test]
    fn a_wakeup_for_another_word_of_the_slot_does_not_end_a_wait() {
        let words = [const { AtomicU32::new(0) }; SLOTS + 1];
        let pairs =
            words.iter().enumerate().flat_map(|(i, a)| words[..i].iter().map(move |b| (a, b)));
        let mut same = pairs.filter(|(a, b)| core::ptr::eq(slot(a), slot(b)));
        let (word, other) = same.next().expect("there are more words than slots");
        std::thread::scope(|s| {
            let until = system_now().after(Ns::from_ms(30));
            let waiter = s.spawn(move || {
                wait(word, 0, until);
                assert!(system_now() >= until);
            });
            while !waiter.is_finished() {
                wake_one(other);
            }
        });
    }
}
