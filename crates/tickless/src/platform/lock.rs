//! The lock around a base: biased towards the thread that uses it all the time.
//!
//! A base has usually one user, the thread that runs on its CPU, and its critical sections are
//! a few dozen instructions; so what taking an uncontended lock costs is most of what arming a
//! timer costs. Measured side by side, per lock and unlock: a mutex that knows about sleepers
//! 12.2 ns (two atomic exchanges), one exchange and a plain store 6.1 ns, and this lock, once a
//! thread owns the bias, 0.7 ns: two plain stores and three loads.
//!
//! # How
//!
//! A thread that takes the lock [`STREAK`] times in a row becomes its owner. From then on it
//! says by a plain store, in a place of its own, which lock it is *inside*, looks whether it is
//! still the owner, and is in. Another thread takes the mutex underneath, says that there is no
//! owner any more, and looks whether the old one is inside. Each side must have its store seen
//! before it does its load. The owner pays nothing for that: the other side makes every running
//! thread of the process pass a full barrier, with membarrier(2), which costs about a
//! microsecond and is why the bias has to be earned anew.
//!
//! The protocol is in [`crate::platform::bias`], which the model checkers run. A former owner that
//! reads the bias again sees that it has lost it; what it wrote until then is in its own slot,
//! where no other thread reads it as its own.
//! Source: D. Dice, M. Moir and W. Scherer, "Quickly Reacquirable Locks" (2003), with the
//! asymmetric barrier of membarrier(2)'s manual page.
//!
//! Where the system has no membarrier there is no bias. Who waits spins, yields, then sleeps
//! for moments, because nobody would wake it: a holder that lost its CPU is noticed within
//! 50 µs of getting it back.

use crate::platform::bias::{Bias, ThreadSlot, World};
use crate::platform::fork::ProcessLock;
use crate::platform::membarrier;
use crate::platform::relax::relax;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use tickless_core::platform::Lock;

/// Mutual exclusion for a base's state.
pub struct BiasedLock<T> {
    bias: Bias<Threads>,
    value: UnsafeCell<T>,
}

/// The threads of this process.
struct Threads;

impl World for Threads {
    type Word = AtomicU64;
    /// Taking the bias away costs about a microsecond: a nanosecond for each of these.
    const STREAK: u64 = if cfg!(test) { 8 } else { 1024 };

    #[inline]
    fn light_barrier() {
        // The CPU may still let a load overtake a store: the heavy one makes it not to, when that
        // matters.
        compiler_fence(Ordering::SeqCst);
    }

    fn heavy_barrier() {
        membarrier::on_every_thread();
    }

    fn relax(round: u32) {
        relax(round);
    }
}

/// The slot of a thread. Lives for ever, since others may look at any time; a thread that ends
/// leaves it to another.
#[repr(align(128))]
struct Slot(ThreadSlot<Threads>);

static FREE_SLOTS: ProcessLock<Vec<&'static Slot>> = ProcessLock::new(Vec::new());

/// What a thread has that has no slot of its own: it is inside of a lock that does not exist, and
/// so gets into no other one by its bias.
static NO_SLOT: Slot = Slot(ThreadSlot::inside_of(AtomicU64::new(1)));

thread_local! {
    // A pointer: in Rust 1.88 a constant cannot be a reference to what changes.
    static SLOT: Cell<*const Slot> = const { Cell::new(&raw const NO_SLOT) };
    /// Gives the slot back when the thread ends.
    static GIVE_BACK: GiveBack = const { GiveBack };
}

struct GiveBack;

// SAFETY: the value is only reached through a guard, and there is one guard at a time.
unsafe impl<T: Send> Sync for BiasedLock<T> {}
// SAFETY: nothing in a lock is tied to the thread that has the lock object.
unsafe impl<T: Send> Send for BiasedLock<T> {}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedLock").finish_non_exhaustive()
    }
}

impl<T: Send> Lock<T> for BiasedLock<T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        BiasedLock { bias: Bias::new(), value: UnsafeCell::new(value) }
    }

    #[inline]
    fn lock(&self) -> Guard<'_, T> {
        self.try_lock_fast().unwrap_or_else(|| self.take_mutex())
    }

    /// By the bias, if this thread has it.
    #[inline(always)]
    fn try_lock_fast(&self) -> Option<Guard<'_, T>> {
        let slot = slot();
        let has_entered = self.bias.enter(self.name(), slot.name(), &slot.0);
        has_entered.then(|| Guard { lock: self, slot: Some(slot), here: PhantomData })
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        self.bias.is_wanted()
    }

    fn yield_to_waiters(&self) {
        self.bias.yield_to_waiters();
    }
}

impl<T> BiasedLock<T> {
    /// Its address, which is compared and never followed.
    fn name(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    #[cold]
    #[inline(never)]
    fn take_mutex(&self) -> Guard<'_, T> {
        let me = SLOT.with(|slot| core::ptr::from_ref(slot).addr()) as u64;
        let settle = || {
            let slot = membarrier::is_available().then(take_slot).flatten();
            slot.map(Slot::name)
        };
        self.bias.take_mutex(self.name(), me, Slot::by_name, settle);
        Guard { lock: self, slot: None, here: PhantomData }
    }
}

impl Slot {
    /// Its address.
    #[inline]
    fn name(&'static self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    fn is_nobodys(&'static self) -> bool {
        core::ptr::eq(self, &NO_SLOT)
    }

    /// The slot that a lock has noted as its owner's.
    fn by_name(name: u64) -> &'static ThreadSlot<Threads> {
        // SAFETY: slots live for ever, and locks note no other names than theirs.
        &unsafe { &*core::ptr::with_exposed_provenance::<Slot>(name as usize) }.0
    }
}

/// The slot of this thread, or nobody's.
#[inline(always)]
fn slot() -> &'static Slot {
    // SAFETY: slots live for ever, and nothing else is put there.
    unsafe { &*SLOT.get() }
}

/// This thread's slot; `None` while the thread is ending.
fn take_slot() -> Option<&'static Slot> {
    if slot().is_nobodys() && GIVE_BACK.try_with(|_| ()).is_ok() {
        let free = FREE_SLOTS.lock().pop();
        let slot = free.unwrap_or_else(|| {
            let slot = Box::leak(Box::new(Slot(ThreadSlot::new())));
            // Others find it by its address.
            let _ = core::ptr::from_ref(slot).expose_provenance();
            slot
        });
        SLOT.set(slot);
    }
    Some(slot()).filter(|slot| !slot.is_nobodys())
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        // The slot may still be named as an owner's: whoever gets it is that owner then, as good as
        // this thread was.
        let slot = slot();
        SLOT.set(&raw const NO_SLOT);
        if !slot.is_nobodys() {
            FREE_SLOTS.lock().push(slot);
        }
    }
}

/// The right to use what a [`BiasedLock`] guards.
pub struct Guard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// The owner's, if it went in by its bias.
    slot: Option<&'static Slot>,
    /// Not `Send`: a slot belongs to its thread. Not `Sync` by way of the lock, which is so for
    /// any `T: Send`.
    here: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives out shared references to the value, and nothing else.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed for good.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.0.leave(),
            None => self.lock.bias.give_mutex_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;
    use std::sync::Barrier;

    /// Two counters that are only equal if nobody is inside at the same time.
    #[derive(Default)]
    struct Pair(Cell<u64>, Cell<u64>);

    fn add(lock: &BiasedLock<Pair>) {
        let pair = lock.lock();
        let before = pair.0.get();
        pair.0.set(before + 1);
        assert_eq!(pair.1.get(), before, "two threads were inside");
        pair.1.set(before + 1);
    }

    const ROUNDS: u64 = if cfg!(miri) { 60 } else { 300_000 };

    /// Goal: one guard at a time, whoever has the bias. Method: threads that take the lock in
    /// bursts long enough to earn it and short enough to lose it all the time.
    #[test]
    fn excludes() {
        let lock = BiasedLock::new(Pair::default());
        std::thread::scope(|s| {
            for burst in [1, 20, 50, 200] {
                let lock = &lock;
                s.spawn(move || {
                    for round in 0..ROUNDS {
                        add(lock);
                        if round % burst == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(lock.lock().0.get(), 4 * ROUNDS);
    }

    /// Goal: an owner that goes in at the very moment at which it loses the bias is seen.
    /// Method: one thread that never stops, one that comes now and then.
    #[test]
    fn an_owner_in_full_flight_is_seen() {
        let lock = BiasedLock::new(Pair::default());
        let done = AtomicBool::new(false);
        let (mut owned, visits) = (0, ROUNDS / 10);
        std::thread::scope(|s| {
            let owner = s.spawn(|| {
                let mut times = 0;
                while !done.load(Ordering::Relaxed) {
                    add(&lock);
                    times += 1;
                }
                times
            });
            for _ in 0..visits {
                add(&lock);
                (0..40).for_each(|_| core::hint::spin_loop());
            }
            done.store(true, Ordering::Relaxed);
            owned = owner.join().unwrap_or(0);
        });
        assert_eq!(lock.lock().0.get(), owned + visits);
    }

    /// Goal: a slot that outlives its thread makes its next thread the owner, soundly.
    #[test]
    fn slots_are_handed_on() {
        let lock = BiasedLock::new(Pair::default());
        for _ in 0..20 {
            std::thread::scope(|s| {
                s.spawn(|| (0..50).for_each(|_| add(&lock)));
            });
            add(&lock);
        }
        assert_eq!(lock.lock().0.get(), 20 * 51);
    }

    /// Goal: whoever has the lock sees that another thread waits, by the mutex or by its bias, and
    /// sees it no more once that one has been in.
    #[test]
    fn one_that_waits_is_seen() {
        for before in [0, 50] {
            let lock = BiasedLock::new(Pair::default());
            (0..before).for_each(|_| add(&lock));
            let inside = lock.lock();
            assert!(!lock.is_wanted());
            std::thread::scope(|s| {
                let other = s.spawn(|| add(&lock));
                let begun = std::time::Instant::now();
                while !lock.is_wanted() {
                    assert!(begun.elapsed().as_secs() < 60, "it is not seen");
                    std::thread::yield_now();
                }
                drop(inside);
                lock.yield_to_waiters();
                other.join().unwrap_or_default();
            });
            assert!(!lock.is_wanted());
            assert_eq!(lock.lock().0.get(), before + 1);
        }
    }

    thread_local! {
        /// What a round of waiting in [`Staged`] does.
        static ROUND: Cell<fn()> = const { Cell::new(|| ()) };
        static WAITED: Cell<u32> = const { Cell::new(0) };
        static STAGED: Bias<Staged> = Bias::new();
    }

    /// A world in which one thread plays all.
    struct Staged;

    impl World for Staged {
        type Word = AtomicU64;
        const STREAK: u64 = u64::MAX;
        fn light_barrier() {}
        fn heavy_barrier() {}
        fn relax(_: u32) {
            ROUND.replace(|| WAITED.set(WAITED.get() + 1))();
        }
    }

    /// Goal: one that gives the lock back waits for one that wants it, for a bounded time.
    #[test]
    fn others_are_let_in_but_not_for_ever() {
        fn gives_back() {
            STAGED.with(|bias| {
                assert!(bias.is_wanted());
                bias.give_mutex_back();
                bias.yield_to_waiters();
                assert!(!bias.is_wanted(), "the one that wants it is asleep");
            });
        }
        STAGED.with(|bias| {
            let take = |me| bias.take_mutex(1, me, |_| unreachable!(), || None);
            bias.yield_to_waiters();
            take(1);
            assert_eq!(WAITED.get(), 0, "nobody wants it");
            ROUND.set(gives_back);
            take(2);
            assert!(WAITED.get() >= 10, "{} rounds", WAITED.get());
        });
    }

    /// Goal: holding one lock while taking another does not confuse the slot.
    #[test]
    fn nested_locks_exclude() {
        let (outer, inner) = (BiasedLock::new(Pair::default()), BiasedLock::new(Pair::default()));
        let start = Barrier::new(2);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    start.wait();
                    for _ in 0..ROUNDS / 10 {
                        (0..20).for_each(|_| add(&inner));
                        let outer = outer.lock();
                        outer.0.set(outer.0.get() + 1);
                        add(&inner);
                    }
                });
            }
        });
        assert_eq!(outer.lock().0.get(), 2 * (ROUNDS / 10));
        assert_eq!(inner.lock().0.get(), 2 * 21 * (ROUNDS / 10));
    }
}
