//! The platform: what the core needs from the system on which it runs.
//!
//! The host (a normal operating system), the model checkers and the simulated machine each
//! implement it. Only `bases`, `owned`, the timer's node and the combined counter use it; the
//! wheel, the queue and all arithmetic do not depend on it.

use crate::rearm::Rearm;
use crate::time::{CpuId, Ns};
pub use crate::word::{Ordering, OwnLine, ParkingWord, Word};
use core::ops::DerefMut;

/// The system on which bases run.
///
/// # Safety
/// The bases dereference pointers to timers depending on what words and locks contain. An
/// implementation must uphold these rules:
/// - [`Word`](Platform::Word) is one atomic word of memory. A load returns the last value that was
///   stored, or an earlier one where the orderings allow it for `AtomicU64`. A compare-and-exchange
///   writes if and only if it returns `Ok`. Nothing else changes the word.
/// - [`Lock`](Platform::Lock) is exclusive: from the return of `lock` until the guard is dropped,
///   no thread has another guard of that lock. A guard always dereferences to the value that was
///   passed to `new`. Dropping a guard happens before the next `lock` returns.
/// - [`Task`](Platform::Task) is copied unchanged.
/// - The functions that are called under a lock, [`now`](Platform::now), [`here`](Platform::here)
///   and [`program`](Platform::program), neither unwind nor use the bases, because a timer can be
///   between two states at that moment.
///
/// Errors in anything else do not violate memory safety: a clock that jumps, a CPU that does not
/// exist, a device that never fires, or a park that returns at once only makes timers late or
/// early.
pub unsafe trait Platform: Sized + Send + Sync + 'static {
    /// A 64-bit atomic word.
    type Word: Word;
    /// A 32-bit atomic word, on which threads that cancel a timer park (sleep).
    type ParkingWord: ParkingWord;
    /// Mutual exclusion for one base's state.
    type Lock<T: Send>: Lock<T>;
    /// What to run when a timer fires: the timer stores this value, and its base returns it.
    type Task: Copy + Send;

    /// How many times a canceller checks whether a callback has returned, before it parks.
    const SPINS: u32 = 100;

    /// Returns the current time of the clock on which deadlines are given.
    fn now(&self) -> Ns;

    /// Returns the time up to which timers are due: the current time, unless what looks for due
    /// timers has come only to an earlier time.
    #[inline]
    fn due_until(&self) -> Ns {
        self.now()
    }

    /// Returns the CPU on which the caller runs. The caller is perhaps on another CPU by the time
    /// this function returns.
    fn here(&self) -> CpuId;

    /// Returns the same if that needs only a few instructions, as [`Lock::try_lock_fast`] does.
    #[inline(always)]
    fn try_here(&self) -> Option<CpuId> {
        Some(self.here())
    }

    /// Programs a CPU's event device. Called under the lock of that CPU's base, so that the device
    /// is written in the order in which its deadlines were decided. Returns what the caller must do
    /// after it has unlocked: [`Rearm::Keep`] or [`Rearm::Kick`]. A deadline that has passed makes
    /// the device fire at once.
    fn program(&self, cpu: CpuId, at: Ns) -> Rearm;

    /// Makes a CPU run the handler of its base. Called without a lock.
    fn kick(&self, cpu: CpuId);

    /// Called in a loop that waits for another CPU: spins, yields or sleeps for a moment. `round`
    /// counts up from zero.
    fn relax(&self, round: u32);

    /// Sleeps while `word` holds `value`. Can return early: the caller checks again. Called without
    /// a lock. The words on which threads park are counters: after a change, the thread checks
    /// whether its wait has ended.
    fn park(&self, word: &Self::ParkingWord, value: u32);

    /// Wakes all threads that are parked on `word`, which has just changed. Called without a lock.
    fn unpark(&self, word: &Self::ParkingWord);
}

/// A lock that guards a value.
pub trait Lock<T>: Send + Sync {
    /// Gives access to the value, and unlocks when dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;

    /// Creates an unlocked lock.
    fn new(value: T) -> Self;
    /// Waits until the lock is free and takes it.
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes the lock if that needs only a few instructions. After `None` the caller calls
    /// [`lock`](Lock::lock); if it does so in a separate function, the compiler can keep the values
    /// of the fast path in registers.
    #[inline(always)]
    fn try_lock_fast(&self) -> Option<Self::Guard<'_>> {
        Some(self.lock())
    }

    /// Returns whether another thread waits for this lock, which the caller holds. A hint for a
    /// long operation to unlock early. Costs one load.
    fn is_wanted(&self) -> bool {
        false
    }

    /// Gives a waiting thread time to take this lock, which the caller has just unlocked and would
    /// otherwise take again first. Returns soon even if the thread does not take it.
    fn yield_to_waiters(&self) {}
}
