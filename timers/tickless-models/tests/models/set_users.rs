//! The count of a set's users, compiled from the library's file over the checkers' words.

#[path = "../../../tickless/src/timer/users.rs"]
mod users;

use super::exploring::{Depth, explore};
use super::stage::{CPU0, CPU1};
use crate::checker::{CheckedWord, go_to, here, share};
use std::cell::Cell;
use std::sync::Arc;
use tickless_core::platform::{Ordering, Word};
use users::Users;

const RELAXED: Ordering = Ordering::Relaxed;

thread_local! {
    /// Whether the set has been freed. All threads of a model run on one thread of the system.
    static FREED: Cell<bool> = const { Cell::new(false) };
}

/// A count that must not be used after the set has been freed.
struct Counted(CheckedWord);

impl Counted {
    fn word(&self) -> &CheckedWord {
        assert!(!FREED.get(), "the set has been freed");
        &self.0
    }
}

impl Word for Counted {
    fn new(value: u64) -> Self {
        Counted(CheckedWord::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.word().load(order)
    }

    fn store(&self, _: u64, _: Ordering) {
        unreachable!("counts are not overwritten");
    }

    fn compare_exchange(&self, _: u64, _: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        unreachable!("counts are swapped and added to");
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.word().swap(value, order)
    }

    fn add(&self, value: u64, order: Ordering) -> u64 {
        self.word().add(value, order)
    }
}

struct Set {
    users: Users<Counted>,
    /// What each of the three threads has done through its users.
    done: [CheckedWord; 3],
    ends: CheckedWord,
}

impl Set {
    fn new(bases: usize, users: usize) -> Arc<Set> {
        FREED.set(false);
        let word = |_| CheckedWord::new(0);
        let set =
            Set { users: Users::new(bases), done: [0, 1, 2].map(word), ends: CheckedWord::new(0) };
        go_to(CPU0);
        (0..users).for_each(|_| set.add());
        Arc::new(set)
    }

    fn add(&self) {
        self.users.add(|| here().index());
    }

    /// Thread number `thread` uses the set through its last user, and removes that.
    fn remove(&self, thread: usize) {
        self.done[thread].store(1, RELAXED);
        if self.users.remove(|| here().index()) {
            self.end();
        }
    }

    fn close(&self, thread: usize) {
        self.done[thread].store(1, RELAXED);
        if self.users.close() {
            self.end();
        }
    }

    fn end(&self) {
        let done = [0, 1, 2].map(|thread| self.done[thread].load(RELAXED));
        assert_eq!(done, [1; 3], "what another user did is not visible at the end");
        FREED.set(true);
        self.ends.add(1, RELAXED);
    }

    fn check(&self) {
        assert_eq!(self.ends.load(RELAXED), 1, "a set ends once");
    }
}

/// Goal: a set ends once, when it is closed and has no user, and the thread that ends it sees what
/// all users did. Method: both CPUs remove users that CPU 0 has counted while the set is closed.
#[test]
fn a_set_ends_once_with_its_last_user() {
    for bases in [1, 2] {
        explore("a set ends once", Depth::three_preemptions(), move || {
            let set = Set::new(bases, 2);
            let one = share(CPU1, &set, |set| set.remove(1));
            let other = share(CPU0, &set, |set| set.remove(2));
            set.close(0);
            one.join();
            other.join();
            set.check();
        });
    }
}

/// Goal: users that a user adds keep the set, on whichever CPU and however far it is closed.
/// Method: a thread adds a user on one CPU, moves, and removes both on the other CPU.
#[test]
fn a_user_of_a_closed_set_keeps_it() {
    explore("a user keeps a set", Depth::three_preemptions(), || {
        let set = Set::new(2, 1);
        set.done[2].store(1, RELAXED);
        let thread = share(CPU0, &set, |set| {
            set.add();
            go_to(CPU1);
            assert!(!set.users.remove(|| here().index()), "it has another user");
            set.remove(1);
        });
        set.close(0);
        thread.join();
        set.check();
    });
}

#[test]
fn a_set_without_users_ends_when_it_is_closed() {
    explore("no users", Depth::three_preemptions(), || {
        let set = Set::new(2, 2);
        assert_eq!(set.users.count(), 2);
        let thread = share(CPU1, &set, |set| set.remove(1));
        set.remove(2);
        thread.join();
        assert_eq!((set.users.count(), set.ends.load(RELAXED)), (0, 0), "it is open");
        set.close(0);
        set.check();
    });
}
