//! The lock of each CPU's own data, compiled from the library's file over the checkers' words.

#[expect(unsafe_code, reason = "the lock's value")]
#[path = "../../../tickless/src/platform/try_lock.rs"]
mod try_lock;

use super::exploring::{Depth, explore};
use super::stage::{CPU0, CPU1};
use crate::checker::{CheckedWord, share, yield_now};
use std::sync::Arc;
use tickless_core::platform::{Ordering, Word};
use try_lock::TryLock;

const RELAXED: Ordering = Ordering::Relaxed;

/// Two counts, each under a lock; Relaxed, so that only the lock makes a count visible.
struct Counts([TryLock<CheckedWord, CheckedWord>; 2]);

impl Counts {
    fn add(&self) {
        let mut place = 0;
        loop {
            if let Some(count) = self.0[place].try_lock() {
                let before = count.load(RELAXED);
                yield_now();
                assert_eq!(count.load(RELAXED), before, "two threads are inside");
                count.store(before + 1, RELAXED);
                return;
            }
            place = (place + 1) % self.0.len();
            yield_now();
        }
    }
}

/// Goal: one thread at a time has the lock, and sees what the one before did: no count is lost.
#[test]
fn a_lock_excludes() {
    explore("a lock that nothing waits for", Depth::full(), || {
        let count = |_| TryLock::new(CheckedWord::new(0));
        let counts = Arc::new(Counts([0, 1].map(count)));
        let threads = [CPU0, CPU1].map(|cpu| share(cpu, &counts, Counts::add));
        counts.add();
        threads.into_iter().for_each(|thread| thread.join());
        let all = counts.0.iter().map(|count| count.try_lock().map(|count| count.load(RELAXED)));
        assert_eq!(all.sum::<Option<u64>>(), Some(3));
    });
}
