//! The protocol of the biased lock. The thread that owns the bias enters the lock by a plain store
//! and a load. Any other thread takes a mutex, and then revokes the bias of its owner.
//!
//! It is generic over atomic words and memory barriers, so that the model checkers run this file
//! with their own. Threads and locks are numbers here, which the module `lock` assigns.
//!
//! | owner | another thread, which holds the mutex |
//! |---|---|
//! | inside = this lock | owner = none |
//! | light barrier | heavy barrier |
//! | owner == me: enter | inside == this lock: wait until it is not |
//!
//! Each side makes its store visible before its load. The heavy barrier acts as a full barrier on
//! every thread, so the light one only has to restrain the compiler. If the owner's load comes
//! before the heavy barrier, so does its store, and the other thread sees that store. If the load
//! comes after the barrier, the owner sees that it has lost the bias.

use tickless_core::platform::{Ordering, Word};

/// The number of rounds of [`Barriers::relax`] for which a thread yields to waiters after it has
/// released the lock. In the last rounds it yields its CPU, which a waiting thread may need.
const PATIENCE: u32 = 102;

/// The memory barriers that the protocol needs, and other properties of a platform.
pub trait Barriers {
    type Word: Word;
    /// The number of times in a row that a thread takes the mutex before it gets the bias.
    const STREAK: u64;

    /// Keeps the compiler from moving a later load of this thread before an earlier store.
    fn light_barrier();
    /// Makes every thread of the process pass a full memory barrier.
    fn heavy_barrier();
    /// Pauses for one round of a loop that waits for another thread; `round` counts up from zero.
    fn relax(round: u32);
}

pub struct Bias<W: Barriers> {
    /// The name of the slot of the thread that owns the bias, or 0. Written under the mutex.
    owner: W::Word,
    /// The mutex: 1 while a thread holds it.
    taken: W::Word,
    /// How many times in a row the thread `last` has taken the mutex. The mutex guards both words.
    streak: W::Word,
    last: W::Word,
    /// 1 if a thread waits for the lock. Waiting threads set it, and a waiting thread that gets the
    /// lock clears it. It is a hint, which may be out of date.
    wanted: W::Word,
}

/// Records which lock a thread has entered by its bias. A lock that the thread holds by the mutex
/// is not recorded. Each thread has one slot.
pub struct ThreadSlot<W: Barriers> {
    /// The name of the lock that the thread has entered by its bias, or 0. Only the thread that the
    /// slot belongs to writes it.
    inside: W::Word,
}

impl<W: Barriers> ThreadSlot<W> {
    pub fn new() -> ThreadSlot<W> {
        ThreadSlot::inside_of(W::Word::new(0))
    }

    /// Makes the slot of a thread that has entered the lock that this word names.
    pub const fn inside_of(inside: W::Word) -> ThreadSlot<W> {
        ThreadSlot { inside }
    }

    #[inline]
    pub fn leave(&self) {
        // Release: pairs with the Acquire in `revoke`.
        self.inside.store(0, Ordering::Release);
    }
}

impl<W: Barriers> Bias<W> {
    pub fn new() -> Bias<W> {
        let word = || W::Word::new(0);
        Bias { owner: word(), taken: word(), streak: word(), last: word(), wanted: word() }
    }

    /// Takes the lock without the mutex, if the caller owns the bias. `slot` is the caller's slot,
    /// `thread` the name of that slot, and `lock` the name of this lock.
    #[inline]
    pub fn enter(&self, lock: u64, thread: u64, slot: &ThreadSlot<W>) -> bool {
        if slot.inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // Release: another thread may revoke this thread's bias of a second lock. If it reads the
        // name of this lock here, it concludes that this thread has left the second lock, and must
        // see the writes that were made under it.
        slot.inside.store(lock, Ordering::Release);
        W::light_barrier();
        if self.owner.load(Ordering::Relaxed) == thread {
            return true;
        }
        slot.leave();
        false
    }

    /// Takes the mutex and revokes the bias of its owner. `me` identifies the caller; `settle`
    /// returns the name of the caller's slot if the caller can own the bias.
    #[inline(always)]
    pub fn take_mutex<'a>(
        &self,
        lock: u64,
        me: u64,
        slot_of: impl FnOnce(u64) -> &'a ThreadSlot<W>,
        settle: impl FnOnce() -> Option<u64>,
    ) where
        W: 'a,
    {
        // Acquire: pairs with the Release in `unlock_mutex`.
        let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
        if self.taken.compare_exchange(0, 1, taken, not).is_err() {
            self.wait();
        }
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != 0 {
            self.revoke(lock, slot_of(owner));
        }
        if self.last.load(Ordering::Relaxed) != me {
            self.last.store(me, Ordering::Relaxed);
            self.streak.store(0, Ordering::Relaxed);
            return;
        }
        let streak = self.streak.load(Ordering::Relaxed) + 1;
        self.streak.store(streak, Ordering::Relaxed);
        if streak >= W::STREAK {
            self.streak.store(0, Ordering::Relaxed);
            // Do not take the bias while another thread waits for the lock: that thread would
            // revoke the bias at once, which costs a heavy barrier.
            if self.is_wanted() {
                return;
            }
            if let Some(thread) = settle() {
                self.owner.store(thread, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    pub fn unlock_mutex(&self) {
        // Release: pairs with the Acquire in `take_mutex` and `wait`.
        self.taken.store(0, Ordering::Release);
    }

    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Waits briefly until a waiting thread has taken the lock. Otherwise a caller that takes the
    /// lock again would win the race every time, because its CPU has the lock's words in its cache.
    pub fn yield_to_waiters(&self) {
        for round in 0..PATIENCE {
            if !self.is_wanted() {
                return;
            }
            W::relax(round);
        }
        // Wait no longer, and clear the hint: the waiting thread may have lost its CPU. It sets the
        // hint again when it runs.
        self.wanted.store(0, Ordering::Relaxed);
    }

    /// Tells the holder that a thread waits. Called in every round, because another waiter that has
    /// entered clears the hint.
    fn ask(&self) {
        if !self.is_wanted() {
            self.wanted.store(1, Ordering::Relaxed);
        }
    }

    /// Revokes the owner's bias and waits until the owner has left the lock. The caller holds the
    /// mutex.
    #[cold]
    fn revoke(&self, lock: u64, slot: &ThreadSlot<W>) {
        self.owner.store(0, Ordering::Relaxed);
        self.streak.store(0, Ordering::Relaxed);
        W::heavy_barrier();
        let mut round = 0;
        // Acquire: pairs with the Releases in `leave` and `enter`, so that the owner's writes are
        // visible.
        while slot.inside.load(Ordering::Acquire) == lock {
            self.ask();
            W::relax(round);
            round = round.saturating_add(1);
        }
        if round > 0 {
            self.wanted.store(0, Ordering::Relaxed);
        }
    }

    #[cold]
    fn wait(&self) {
        let mut round = 0;
        loop {
            while self.taken.load(Ordering::Relaxed) != 0 {
                self.ask();
                W::relax(round);
                round = round.saturating_add(1);
            }
            // Acquire: pairs with the Release in `unlock_mutex`.
            let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
            if self.taken.compare_exchange(0, 1, taken, not).is_ok() {
                self.wanted.store(0, Ordering::Relaxed);
                return;
            }
        }
    }
}
