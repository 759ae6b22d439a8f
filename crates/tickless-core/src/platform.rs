//! The seam: what the core asks of the world it runs in.
//!
//! Three worlds implement it: the host, the model checkers under `tests/`, and the simulated
//! machine. Only `state`, `base`, `cancel`, `expiry`, `migrate` and the combined counter
//! mention it; the wheel, the queue and all arithmetic know nothing of it.

use crate::rearm::Rearm;
use crate::time::{CpuId, Ns};
pub use crate::word::{Ordering, ParkingWord, Word};
use core::ops::DerefMut;

/// The world that bases live in.
///
/// # Safety
/// The bases follow pointers to timers by what their words and locks say. Whoever implements this
/// promises:
/// - [`Word`](Platform::Word) is one atomic word of memory. A load returns what was stored last, or
///   an earlier value that the orderings allow as they do for `AtomicU64`; a compare-and-exchange
///   writes exactly if it says so. Nothing else changes the word.
/// - [`Lock`](Platform::Lock) excludes: from when `lock` returns until the guard is dropped there
///   is no other guard of that lock, on any thread. A guard dereferences to the value that `new`
///   was given, the same one every time. Dropping a guard happens before the next `lock` returns.
/// - [`Task`](Platform::Task) is copied as it is.
/// - What is called under a lock, [`now`](Platform::now), [`here`](Platform::here) and
///   [`program`](Platform::program), neither unwinds nor uses the bases. (A timer is between two
///   states then.)
///
/// It need not be right about anything else: a clock that jumps, a CPU that does not exist, a
/// device that never comes, a park that returns at once make timers late or early and break no
/// memory.
pub unsafe trait Platform: Sized + Send + Sync + 'static {
    /// A 64-bit atomic word.
    type Word: Word;
    /// A 32-bit atomic word that cancellers park on.
    type ParkingWord: ParkingWord;
    /// Mutual exclusion for one base's state.
    type Lock<T: Send>: Lock<T>;
    /// What a timer carries and a base hands back when the timer fires.
    type Task: Copy + Send;

    /// How often a canceller looks for the end of a callback before it parks.
    const SPINS: u32 = 100;

    /// The present, on the clock that deadlines are given in.
    fn now(&self) -> Ns;

    /// The CPU that the caller runs on; it may be out of date as soon as it is known.
    fn here(&self) -> CpuId;

    /// Programs a CPU's event device. Called under the lock of that CPU's base, so that two
    /// decisions are carried out in the order in which they were made. Returns what is left to
    /// be done once the lock is free; [`Rearm::Arm`] if the device refuses, as a deadline that
    /// has passed may be, and is to be told another one (R13).
    fn program(&self, cpu: CpuId, at: Ns) -> Rearm;

    /// Makes a CPU look at its base. Called without any lock.
    fn kick(&self, cpu: CpuId);

    /// Called in a loop that waits for another CPU; `round` counts up from zero.
    fn relax(&self, round: u32);

    /// Sleeps for as long as `word` holds `value`, or shorter: the caller checks again. Called
    /// without any lock. Words that threads park on are counters.
    fn park(&self, word: &Self::ParkingWord, value: u32);

    /// Wakes everybody who is parked on `word`, which has just changed. Called without any lock.
    fn unpark(&self, word: &Self::ParkingWord);
}

/// Mutual exclusion around a value.
pub trait Lock<T>: Send + Sync {
    /// The right to use the value; gives the lock back when dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;

    /// An unlocked lock.
    fn new(value: T) -> Self;
    /// Waits until the lock is free and takes it.
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes the lock in the usual way, or not at all: after a `None` the caller takes it by
    /// [`lock`](Lock::lock). One that does so in a function of its own keeps what it has in
    /// registers on the usual way.
    #[inline(always)]
    fn try_lock_fast(&self) -> Option<Self::Guard<'_>> {
        Some(self.lock())
    }

    /// Does another thread wait for this lock, which the caller has? A hint: a caller in the middle
    /// of a long job then gives the lock back early. Costs one load.
    fn is_wanted(&self) -> bool {
        false
    }

    /// Gives a thread that waits for this lock, which the caller has just given back, the time to
    /// take it: the caller would otherwise have it again first. Returns soon even if that thread
    /// does not come.
    fn let_in(&self) {}
}
