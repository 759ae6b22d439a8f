//! The protocol of the biased lock: who is inside, by its bias or by the mutex underneath.
//!
//! Over words and barriers of any world, so that the model checkers run these very lines. What
//! stands here names threads and locks by numbers; which they are is up to `lock`.
//!
//! | owner | another thread, under the mutex |
//! |---|---|
//! | inside = this lock | owner = nobody |
//! | light barrier | heavy barrier |
//! | owner == me? go in | inside == this lock? wait until not |
//!
//! Each side has its store seen before it does its load: the heavy barrier stands for one on every
//! thread, so the light one needs to hold the compiler back, and no more. If the owner's load came
//! before the heavy barrier, its store did too, and the other thread sees it; if it came after, it
//! sees that there is no owner.

use tickless_core::platform::{Ordering, Word};

/// For so many rounds of [`World::relax`] somebody who gave a lock back lets others in. In the last
/// of them it gives its CPU away: the other one may have none.
const PATIENCE: u32 = 102;

/// What the protocol stands on.
pub trait World {
    /// A word that threads share.
    type Word: Word;
    /// How often in a row a thread takes the mutex before it is offered the bias.
    const STREAK: u64;

    /// Keeps a store before a load, on this thread, as far as the compiler goes.
    fn light_barrier();
    /// Has every thread pass a full barrier.
    fn heavy_barrier();
    /// One round of waiting for another thread.
    fn relax(round: u32);
}

/// The state of one lock.
pub struct Bias<W: World> {
    /// The slot of the thread that may go in by its bias, or 0. Written under the mutex.
    owner: W::Word,
    /// The mutex underneath: 1 while somebody has it.
    taken: W::Word,
    /// Under the mutex: how often in a row it was taken by the thread that took it last, and which
    /// that was.
    streak: W::Word,
    last: W::Word,
    /// Is 1 if somebody waits: set by those that wait, cleared by the one that gets in. A hint.
    wanted: W::Word,
}

/// Where a thread says which lock it is inside of by its bias.
pub struct ThreadSlot<W: World> {
    /// The lock, or 0. Written by the slot's thread alone.
    inside: W::Word,
}

impl<W: World> ThreadSlot<W> {
    /// Of a thread that is inside of none.
    pub fn new() -> ThreadSlot<W> {
        ThreadSlot::inside_of(W::Word::new(0))
    }

    /// Of a thread that is inside of the lock which this word names.
    pub const fn inside_of(inside: W::Word) -> ThreadSlot<W> {
        ThreadSlot { inside }
    }

    /// The slot's thread leaves the lock that it is in by its bias.
    #[inline]
    pub fn leave(&self) {
        // Release: pairs with the Acquire in `revoke`.
        self.inside.store(0, Ordering::Release);
    }
}

impl<W: World> Bias<W> {
    /// Of a lock that nobody has or owns.
    pub fn new() -> Bias<W> {
        let word = || W::Word::new(0);
        Bias { owner: word(), taken: word(), streak: word(), last: word(), wanted: word() }
    }

    /// Goes into this lock by its bias, if the caller owns that: `slot` is the caller's, `thread`
    /// that slot's name, and `lock` this lock's.
    #[inline]
    pub fn enter(&self, lock: u64, thread: u64, slot: &ThreadSlot<W>) -> bool {
        if slot.inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // Release: a thread that takes the bias of another lock away from this one, and reads the
        // name of this lock, sees what was done under that one.
        slot.inside.store(lock, Ordering::Release);
        W::light_barrier();
        if self.owner.load(Ordering::Relaxed) == thread {
            return true;
        }
        slot.leave();
        false
    }

    /// Takes the mutex, and the bias away from whoever owns it. `me` tells this thread from others;
    /// `slot_of` finds a slot by its name; `settle` names the caller's, if it is to own the bias.
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
        // Acquire: pairs with the Release in `give_mutex_back`.
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
            // A thread that waits would take the bias away at once, at the price of a barrier.
            if !self.is_wanted()
                && let Some(thread) = settle()
            {
                self.owner.store(thread, Ordering::Relaxed);
            }
        }
    }

    /// Leaves a lock whose mutex the caller has.
    #[inline]
    pub fn give_mutex_back(&self) {
        // Release: pairs with the Acquire in `take_mutex` and `wait`.
        self.taken.store(0, Ordering::Release);
    }

    /// Does somebody wait for the lock, which the caller has?
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Waits for a moment until somebody who waits for the lock has it, which the caller has just
    /// left. The caller's CPU has the words in its cache, and would win every race for them.
    pub fn yield_to_waiters(&self) {
        for round in 0..PATIENCE {
            if !self.is_wanted() {
                return;
            }
            W::relax(round);
        }
        // It may have lost its CPU. Otherwise it asks again.
        self.wanted.store(0, Ordering::Relaxed);
    }

    /// Has whoever is inside know that somebody waits. Another one that waits may have got in and
    /// cleared it, so this is called in every round.
    fn ask(&self) {
        if !self.is_wanted() {
            self.wanted.store(1, Ordering::Relaxed);
        }
    }

    /// Takes the bias from its owner and waits until that is outside. Under the mutex.
    #[cold]
    fn revoke(&self, lock: u64, slot: &ThreadSlot<W>) {
        self.owner.store(0, Ordering::Relaxed);
        self.streak.store(0, Ordering::Relaxed);
        W::heavy_barrier();
        let mut round = 0;
        // Acquire: pairs with the Releases in `leave` and `enter`; what the owner wrote is seen.
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
