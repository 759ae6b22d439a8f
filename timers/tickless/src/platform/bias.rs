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
//!
//! # When the bias pays
//!
//! Each entry by the bias saves a few nanoseconds; the revocation costs a heavy barrier, which
//! interrupts every CPU that runs the process: a microsecond on two CPUs, a hundred on 480. So the
//! bias is earned by a *streak*, a number of times in a row for which a thread takes the mutex. Its
//! length is a multiple of the number of entries that pay for a revocation, as measured in this
//! process ([`BarrierCost`]). If a revocation comes before the bias has paid for it, the next
//! streak must be four times as long. A lock that threads share thus soon gives the bias up, and
//! all its losses together stay a small part of what the mutex costs anyway.

use tickless_core::platform::{Ordering, Word};

/// The number of rounds of [`Barriers::relax`] for which a thread yields to waiters after it has
/// released the lock. In the last rounds it yields its CPU, which a waiting thread perhaps needs.
const PATIENCE: u32 = 102;

/// The memory barriers that the protocol needs, and other properties of a platform.
pub trait Barriers {
    type Word: Word;

    /// The number of times in a row that a thread takes the mutex before it gets the bias of a lock
    /// that has not lost its bias too early yet.
    fn streak() -> u64;
    /// The current time, in a unit that is the same at each call.
    fn now() -> u64;
    /// Keeps the compiler from moving a later load of this thread before an earlier store.
    fn light_barrier();
    /// Makes every thread of the process pass a full memory barrier.
    fn heavy_barrier();
    /// Pauses for one round of a loop that waits for another thread; `round` counts up from zero.
    fn relax(round: u32);
}

/// All words share a cache line, the only one that a thread must get from another CPU to lock.
#[allow(missing_debug_implementations, reason = "an internal type")]
#[repr(align(64))]
pub struct Bias<W: Barriers> {
    /// The number of the slot of the thread that owns the bias, or 0. Written under the mutex.
    owner: W::Word,
    /// The mutex: 1 while a thread holds it.
    taken: W::Word,
    /// How many times in a row the thread `last` has taken the mutex. The mutex guards both words.
    streak: W::Word,
    last: W::Word,
    /// 1 if a thread waits for the lock. Waiting threads set it, and a waiting thread that gets the
    /// lock clears it. It is a hint, which can be out of date.
    wanted: W::Word,
    /// How often the bias was revoked too early, less how often it had paid. The mutex guards this
    /// word and the next one.
    losses: W::Word,
    /// Before the grant of the bias: the time at which the current streak was half as long as it
    /// must be (an older time until then). From the grant on: until when the bias must last to pay.
    clock: W::Word,
}

/// How long a heavy barrier takes in this process: a moving average; lower values count at once.
#[allow(missing_debug_implementations, reason = "an internal type")]
pub struct BarrierCost<W> {
    /// In nanoseconds; 0 before the first barrier.
    average: W,
}

/// The number of times that a thread must take the mutex to earn the bias, for each nanosecond that
/// a heavy barrier takes. Each interrupted CPU adds about 0.3 us to a barrier and itself loses
/// about a microsecond, so all CPUs together lose about four times the barrier's duration. An entry
/// by the bias saves 20 to 40 instructions, some 10 ns, so 0.4 entries for each nanosecond pay for
/// that. This number is five times as high: a streak whose bias never pays takes a fifth longer,
/// once.
const TAKES_PER_NS: u64 = 2;
const STREAK_MIN: u64 = 1_024;
/// A streak becomes longer by this factor each time that the bias is revoked too early.
const GROWTH: u64 = 4;
/// After this many early revocations the lock gets no bias again: the streak would be 10^9 takes.
const LOSSES_MAX: u64 = 10;

impl<W: Word> BarrierCost<W> {
    /// Makes an average that has no value yet: `average` must hold 0.
    pub const fn of(average: W) -> BarrierCost<W> {
        BarrierCost { average }
    }

    /// Adds the duration of a barrier, in ns, to the average.
    pub fn record(&self, ns: u64) {
        // Relaxed: the average is an estimate. If two threads write at once, one value is lost.
        let average = self.average.load(Ordering::Relaxed);
        // Whatever delays a barrier only makes it longer, so a lower value counts at once. Limit a
        // higher value, because the thread perhaps lost its CPU during the barrier.
        let next = match average {
            0 => ns,
            average => ns.min(average + (ns.min(4 * average).saturating_sub(average)) / 8),
        };
        self.average.store(next.max(1), Ordering::Relaxed);
    }

    /// Returns whether a barrier was recorded.
    pub fn is_known(&self) -> bool {
        self.average.load(Ordering::Relaxed) != 0
    }

    pub fn streak(&self) -> u64 {
        (self.average.load(Ordering::Relaxed) * TAKES_PER_NS).max(STREAK_MIN)
    }
}

/// Records which lock a thread has entered by its bias. A lock that the thread holds by the mutex
/// is not recorded. Each thread has one slot.
#[allow(missing_debug_implementations, reason = "an internal type")]
pub struct ThreadSlot<W: Barriers> {
    /// The name of the lock that the thread has entered by its bias, or 0. Only the thread that the
    /// slot belongs to writes it.
    inside: W::Word,
}

impl<W: Barriers> ThreadSlot<W> {
    pub fn new() -> ThreadSlot<W> {
        ThreadSlot::inside_of(W::Word::new(0))
    }

    /// Makes the slot of a thread that has entered the lock that `inside` names.
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
        let [owner, taken, streak, last] = [word(), word(), word(), word()];
        Bias { owner, taken, streak, last, wanted: word(), losses: word(), clock: word() }
    }

    /// Takes the lock without the mutex, if the caller owns the bias. `slot` is the caller's slot,
    /// `thread` the name of that slot, and `lock` the name of this lock.
    #[inline]
    pub fn enter(&self, lock: u64, thread: u64, slot: &ThreadSlot<W>) -> bool {
        if slot.inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // Release: another thread can revoke this thread's bias of a second lock. If it reads the
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
        let needed = self.streak_needed();
        if streak == needed / 2 {
            self.clock.store(W::now(), Ordering::Relaxed);
        }
        if streak >= needed {
            self.streak.store(0, Ordering::Relaxed);
            // Do not take the bias while another thread waits for the lock: that thread would
            // revoke the bias at once, which costs a heavy barrier.
            if self.is_wanted() {
                return;
            }
            if let Some(thread) = settle() {
                self.grant(thread);
            }
        }
    }

    /// Returns the length of a streak that earns the bias; `u64::MAX` after too many early losses.
    fn streak_needed(&self) -> u64 {
        match self.losses.load(Ordering::Relaxed) {
            0 => W::streak(),
            losses if losses < LOSSES_MAX => W::streak() * GROWTH.pow(losses as u32),
            _ => u64::MAX,
        }
    }

    /// Makes a thread the owner of the bias. The bias pays if it lasts for a quarter of the time of
    /// a first streak. That time is estimated from the time of the second half of this streak.
    #[cold]
    fn grant(&self, thread: u64) {
        let (now, half) = (W::now(), self.clock.load(Ordering::Relaxed));
        let losses = self.losses.load(Ordering::Relaxed) as u32;
        let pays_after = now.saturating_sub(half) / 2 / GROWTH.pow(losses);
        self.clock.store(now + pays_after, Ordering::Relaxed);
        self.owner.store(thread, Ordering::Relaxed);
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
        // Wait no longer, and clear the hint: the waiting thread has perhaps lost its CPU. It sets
        // the hint again when it runs.
        self.wanted.store(0, Ordering::Relaxed);
    }

    /// Tells the holder that a thread waits. Called in every round, because another waiter that has
    /// entered clears the hint.
    fn ask(&self) {
        if !self.is_wanted() {
            self.wanted.store(1, Ordering::Relaxed);
        }
    }

    /// Revokes the owner's bias, and waits until the owner has left. The caller holds the mutex.
    #[cold]
    fn revoke(&self, lock: u64, slot: &ThreadSlot<W>) {
        self.owner.store(0, Ordering::Relaxed);
        self.streak.store(0, Ordering::Relaxed);
        let losses = self.losses.load(Ordering::Relaxed);
        let has_paid = W::now() >= self.clock.load(Ordering::Relaxed);
        let losses = if has_paid { losses.saturating_sub(1) } else { losses + 1 };
        self.losses.store(losses, Ordering::Relaxed);
        W::heavy_barrier();
        let mut round = 0;
        // Acquire: pairs with the Releases in `leave` and `enter`, so the owner's writes are seen.
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
