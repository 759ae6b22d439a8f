//! The protocol of the biased lock: a thread enters by its bias or by the mutex.
//!
//! It is generic over words and barriers, so that the model checkers run this file. Threads and
//! locks are numbers here; `lock` assigns them.
//!
//! | owner | another thread, which holds the mutex |
//! |---|---|
//! | inside = this lock | owner = none |
//! | light barrier | heavy barrier |
//! | owner == me: enter | inside == this lock: wait until it is not |
//!
//! Each side makes its store visible before its load. The heavy barrier acts as a full barrier on
//! every thread, so the light one only has to restrain the compiler. If the owner's load precedes
//! the heavy barrier, so does its store, and the other thread sees that store. If the load follows
//! the barrier, the owner sees that it has lost the bias.

use tickless_core::platform::{Ordering, Word};

/// The number of rounds of [`Barriers::relax`] for which a thread yields to waiters after it has
/// released the lock. In the last rounds it yields its CPU, because the waiter may have none.
const PATIENCE: u32 = 102;

/// What the protocol needs of a platform.
pub trait Barriers {
    /// A shared word.
    type Word: Word;
    /// The number of times in a row that a thread takes the mutex before it gets the bias.
    const STREAK: u64;

    /// Keeps the compiler from moving a load of this thread before a store.
    fn light_barrier();
    /// Makes every thread of the process pass a full barrier.
    fn heavy_barrier();
    /// Waits for a round for another thread.
    fn relax(round: u32);
}

/// The state of one lock.
pub struct Bias<W: Barriers> {
    /// The slot of the thread that may enter by its bias, or 0. Written under the mutex.
    owner: W::Word,
    /// The mutex: 1 while a thread holds it.
    taken: W::Word,
    /// The number of times in a row that the last holder has taken the mutex, and that holder.
    /// Guarded by the mutex.
    streak: W::Word,
    last: W::Word,
    /// 1 if a thread waits. Waiting threads set it, and the one that enters clears it. A hint.
    wanted: W::Word,
}

/// Names the lock that a thread has entered by its bias.
pub struct ThreadSlot<W: Barriers> {
    /// The lock, or 0. Only the slot's thread writes it.
    inside: W::Word,
}

impl<W: Barriers> ThreadSlot<W> {
    /// Makes the slot of a thread that has entered no lock.
    pub fn new() -> ThreadSlot<W> {
        ThreadSlot::inside_of(W::Word::new(0))
    }

    /// Makes the slot of a thread that has entered the lock that this word names.
    pub const fn inside_of(inside: W::Word) -> ThreadSlot<W> {
        ThreadSlot { inside }
    }

    /// Leaves the lock that the slot's thread has entered by its bias.
    #[inline]
    pub fn leave(&self) {
        // Release: pairs with the Acquire in `revoke`.
        self.inside.store(0, Ordering::Release);
    }
}

impl<W: Barriers> Bias<W> {
    /// Makes the state of a free lock without an owner.
    pub fn new() -> Bias<W> {
        let word = || W::Word::new(0);
        Bias { owner: word(), taken: word(), streak: word(), last: word(), wanted: word() }
    }

    /// Enters this lock by its bias, if the caller owns it. `slot` is the caller's slot, `thread`
    /// its name, and `lock` the name of this lock.
    #[inline]
    pub fn enter(&self, lock: u64, thread: u64, slot: &ThreadSlot<W>) -> bool {
        if slot.inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // Release: a thread that revokes this thread's bias of another lock, and reads the name of
        // this lock here, sees the writes made under that other lock.
        slot.inside.store(lock, Ordering::Release);
        W::light_barrier();
        if self.owner.load(Ordering::Relaxed) == thread {
            return true;
        }
        slot.leave();
        false
    }

    /// Takes the mutex and revokes the bias of its owner. `me` identifies the caller, `slot_of`
    /// finds a slot by its name, and `settle` returns the name of the caller's slot if the caller
    /// can own the bias.
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
            // A waiting thread would revoke the bias at once, which costs a heavy barrier.
            if self.is_wanted() {
                return;
            }
            if let Some(thread) = settle() {
                self.owner.store(thread, Ordering::Relaxed);
            }
        }
    }

    /// Releases the mutex, which the caller holds.
    #[inline]
    pub fn unlock_mutex(&self) {
        // Release: pairs with the Acquire in `take_mutex` and `wait`.
        self.taken.store(0, Ordering::Release);
    }

    /// Returns whether a thread waits for the lock, which the caller holds.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Waits briefly until a waiting thread has taken the lock, which the caller has just released.
    /// Otherwise the caller would win every race, because its CPU has the words in its cache.
    pub fn yield_to_waiters(&self) {
        for round in 0..PATIENCE {
            if !self.is_wanted() {
                return;
            }
            W::relax(round);
        }
        // The waiter may have lost its CPU. If it still waits, it sets the hint again.
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
            // Acquire: as in `take_mutex`.
            let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
            if self.taken.compare_exchange(0, 1, taken, not).is_ok() {
                self.wanted.store(0, Ordering::Relaxed);
                return;
            }
        }
    }
}
