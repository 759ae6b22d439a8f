//! The lock of a base, which holds one CPU's timers. It is biased: the thread that uses it most
//! takes it by plain loads and stores, because a base usually has one user, the thread on its CPU.
//! Measured per lock and unlock: a mutex with parking 12.2 ns, one exchange and a plain store 6.1
//! ns, and this lock, when the thread owns the bias, 0.7 ns.
//!
//! A thread that takes the lock some thousand times in a row becomes its owner. The number of times
//! grows with the cost of a revocation on this machine ([`Barriers::streak`]). From then on, the
//! owner takes the lock by writing the lock's name into its own slot and checking that it is still
//! the owner. Any other thread takes a mutex, removes the owner, makes every running thread pass a
//! full barrier by membarrier(2), and waits while the owner's slot names this lock. Such a barrier
//! costs about a microsecond on two CPUs and a hundred on 480. The protocol is in
//! [`crate::platform::bias`].
//!
//! Where the system has no membarrier, every thread takes the mutex. A thread that waits for the
//! mutex spins, then yields, then sleeps for 50 µs at a time, because the holder does not wake it.
//!
//! Source: D. Dice, M. Moir and W. Scherer, "Quickly Reacquirable Locks" (2003).

use crate::platform::bias::{BarrierCost, Barriers, Bias, ThreadSlot};
use crate::platform::fork::{self, ProcessLock};
use crate::platform::membarrier;
use crate::platform::relax::relax;
use crate::platform::system_clock::system_now;
use crate::platform::thread_word::thread_word;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use tickless_core::platform::Lock;

/// A mutual-exclusion lock for the state of a base, biased towards the thread that uses it most.
// In memory, the first line of the value follows that of the lock.
#[repr(C)]
pub struct BiasedLock<T> {
    bias: Bias<Threads>,
    value: UnsafeCell<T>,
}

struct Threads;

impl Barriers for Threads {
    type Word = AtomicU64;

    fn streak() -> u64 {
        if cfg!(test) { 8 } else { BARRIERS.streak() }
    }

    fn now() -> u64 {
        system_now().0
    }

    #[inline]
    fn light_barrier() {
        // The fence stops only the compiler: the CPU can still perform the load that follows before
        // the store that precedes. While another thread revokes the bias, its heavy barrier
        // prevents that.
        compiler_fence(Ordering::SeqCst);
    }

    fn heavy_barrier() {
        let begun = Threads::now();
        membarrier::on_every_thread();
        BARRIERS.record(Threads::now().saturating_sub(begun));
    }

    fn relax(round: u32) {
        relax(round);
    }
}

const _: () = assert!(size_of::<Bias<Threads>>() == 64, "one cache line");

static BARRIERS: BarrierCost<AtomicU64> = BarrierCost::of(AtomicU64::new(0));

/// The slot in which a thread names the lock that it is inside. Slots are reused and never freed.
#[repr(align(128))]
struct Slot(ThreadSlot<Threads>);

static FREE_SLOTS: ProcessLock<Vec<&'static Slot>> = ProcessLock::new(Vec::new());

/// The slot that is shared by all threads without a slot of their own. It names a lock that does
/// not exist, so such a thread counts as inside another lock, and uses the mutex.
#[used]
static NO_SLOT: Slot = Slot(ThreadSlot::inside_of(AtomicU64::new(1)));

thread_word! {
    /// The slot of the calling thread.
    OwnSlot: *const Slot = NO_SLOT
}

thread_local! {
    /// Its address tells the running threads apart.
    static HERE: u8 = const { 0 };
    static SLOT_RETURN: SlotReturn = const { SlotReturn };
}

struct SlotReturn;

// SAFETY: the value is accessed only through a guard, and there is one guard at a time.
unsafe impl<T: Send> Sync for BiasedLock<T> {}
// SAFETY: the value is `Send`, and nothing else in a lock depends on the lock object's thread.
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

    /// Takes the lock without the mutex, if this thread owns the bias.
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
    /// Returns the lock's name: its address, which is compared and never dereferenced.
    fn name(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    /// Takes the lock's mutex. At the end of a streak, measures the barrier or takes the bias.
    #[cold]
    #[inline(never)]
    fn take_mutex(&self) -> Guard<'_, T> {
        let me = HERE.with(|here| core::ptr::from_ref(here).addr()) as u64;
        let settle = || {
            if !membarrier::is_available() {
                return None;
            }
            if !BARRIERS.is_known() {
                // The first calls of the heavy barrier are slower than later ones. The quickest of
                // them determines how long a streak must be to earn the bias.
                (0..4).for_each(|_| Threads::heavy_barrier());
                return None;
            }
            take_slot().map(Slot::name)
        };
        self.bias.take_mutex(self.name(), me, Slot::by_name, settle);
        Guard { lock: self, slot: None, here: PhantomData }
    }
}

impl Slot {
    #[inline]
    fn name(&'static self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    fn is_shared(&'static self) -> bool {
        core::ptr::eq(self, &NO_SLOT)
    }

    fn by_name(name: u64) -> &'static ThreadSlot<Threads> {
        // SAFETY: locks record no names but those of slots, and slots are never freed.
        &unsafe { &*core::ptr::with_exposed_provenance::<Slot>(name as usize) }.0
    }
}

#[inline(always)]
fn slot() -> &'static Slot {
    // SAFETY: the word always points to a slot, and slots are never freed.
    unsafe { &*OwnSlot::get() }
}

/// Returns this thread's slot, and first gives it one if necessary; `None` if the thread is ending.
fn take_slot() -> Option<&'static Slot> {
    if slot().is_shared() && SLOT_RETURN.try_with(|_| ()).is_ok() {
        let free = FREE_SLOTS.lock().pop();
        let slot = free.unwrap_or_else(|| {
            let slot = Box::leak(Box::new(Slot(ThreadSlot::new())));
            // Other threads turn the address back into a reference, in `by_name`.
            let _ = core::ptr::from_ref(slot).expose_provenance();
            // A forked child owns no lock of its parent's, so that it takes none by its bias.
            fork::call_in_child(|| OwnSlot::set(&raw const NO_SLOT));
            slot
        });
        OwnSlot::set(slot);
    }
    Some(slot()).filter(|slot| !slot.is_shared())
}

impl Drop for SlotReturn {
    fn drop(&mut self) {
        // Perhaps a lock still records this slot as that of its owner. The next thread that gets
        // the slot is then the owner of that lock, just as this thread was.
        let slot = slot();
        OwnSlot::set(&raw const NO_SLOT);
        if !slot.is_shared() {
            FREE_SLOTS.lock().push(slot);
        }
    }
}

pub struct Guard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// The thread's slot, if it took the lock by its bias; `None` if it holds the mutex.
    slot: Option<&'static Slot>,
    /// Makes the guard neither `Send` nor `Sync`: a slot belongs to its thread, and the derived
    /// `Sync` would require only `T: Send`, as that of the lock does.
    here: PhantomData<*const ()>,
}

// SAFETY: threads that share a guard get only `&T` from it, which `T: Sync` allows.
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
        // SAFETY: this guard is the only one, and it is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.0.leave(),
            None => self.lock.bias.unlock_mutex(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Two counters, which stay equal only if no two threads hold the lock at the same time.
    #[derive(Default)]
    struct Pair(Cell<u64>, Cell<u64>);

    fn add(lock: &BiasedLock<Pair>) {
        let pair = lock.lock();
        let before = pair.0.get();
        pair.0.set(before + 1);
        assert_eq!(pair.1.get(), before, "two threads were inside");
        pair.1.set(before + 1);
    }

    const ROUNDS: u64 = if cfg!(miri) { 3 } else { 15_000 };
    const STARTS: u64 = if cfg!(miri) { 4 } else { 20 };

    /// Method: threads, which end and start again, take the lock in bursts that are long enough to
    /// earn the bias and short enough to lose it.
    #[test]
    fn only_one_thread_is_inside() {
        let (outer, inner) = (BiasedLock::new(Pair::default()), BiasedLock::new(Pair::default()));
        for _ in 0..STARTS {
            std::thread::scope(|s| {
                for burst in [1, 20, 50, 200] {
                    let (outer, inner) = (&outer, &inner);
                    s.spawn(move || {
                        for round in 0..ROUNDS {
                            add(inner);
                            if round % burst == 0 {
                                std::thread::yield_now();
                                let held = outer.lock();
                                held.0.set(held.0.get() + 1);
                                add(inner);
                            }
                        }
                    });
                }
            });
        }
        let bursts: u64 = [1, 20, 50, 200].map(|burst| ROUNDS.div_ceil(burst)).iter().sum();
        assert_eq!(outer.lock().0.get(), STARTS * bursts);
        assert_eq!(inner.lock().0.get(), STARTS * (4 * ROUNDS + bursts));
    }

    thread_local! {
        /// What [`Staged`] does in the next round of a waiting loop.
        static ROUND: Cell<fn()> = const { Cell::new(|| ()) };
        static WAITED: Cell<u32> = const { Cell::new(0) };
        static NOW: Cell<u64> = const { Cell::new(0) };
        static STAGED: Bias<Staged> = Bias::new();
    }

    /// A platform for a test in which one thread plays two: whenever the waiting thread would
    /// pause, `relax` performs the next steps of the other thread.
    struct Staged;

    impl Barriers for Staged {
        type Word = AtomicU64;
        fn streak() -> u64 {
            8
        }
        fn now() -> u64 {
            NOW.get()
        }
        fn light_barrier() {}
        fn heavy_barrier() {}
        fn relax(_: u32) {
            ROUND.replace(|| WAITED.set(WAITED.get() + 1))();
        }
    }

    /// Takes the mutex until the thread owns the bias; returns how often.
    fn takes_until_owned(bias: &Bias<Staged>, slot: &ThreadSlot<Staged>) -> u64 {
        let mut takes = 0;
        while !bias.enter(1, 1, slot) {
            bias.take_mutex(1, 1, |_| unreachable!(), || Some(1));
            bias.unlock_mutex();
            NOW.set(NOW.get() + 1);
            takes += 1;
        }
        slot.leave();
        takes
    }

    /// Goal: if a bias is lost before it has paid for its revocation, the streak that earns the
    /// next bias is longer; if it has paid, that streak is shorter.
    #[test]
    #[cfg_attr(miri, ignore = "one thread plays two, in safe code and for 100,000 takes")]
    fn a_bias_that_does_not_pay_is_given_up() {
        STAGED.with(|bias| {
            let slot = ThreadSlot::new();
            let earn_and_hold_for = |time| {
                let takes = takes_until_owned(bias, &slot);
                NOW.set(NOW.get() + time);
                bias.take_mutex(1, 2, |_| &slot, || None);
                bias.unlock_mutex();
                takes
            };
            // A first streak takes 8 units of time, so the bias must last for 2. The first take of
            // a thread begins its streak.
            let lost: Vec<u64> = (0..4).map(|_| earn_and_hold_for(0)).collect();
            assert_eq!(lost, [8, 32, 128, 512].map(|streak| streak + 1));
            let paid: Vec<u64> = (0..5).map(|_| earn_and_hold_for(2)).collect();
            assert_eq!(paid, [2_048, 512, 128, 32, 8].map(|streak| streak + 1));
            (0..10).for_each(|_| _ = earn_and_hold_for(0));
            for _ in 0..100_000 {
                bias.take_mutex(1, 1, |_| unreachable!(), || panic!("it was given up"));
                bias.unlock_mutex();
            }
        });
    }

    #[test]
    fn barriers_are_averaged() {
        let cost = BarrierCost::of(AtomicU64::new(0));
        assert_eq!((cost.is_known(), cost.streak()), (false, 1_024));
        cost.record(100_000);
        assert_eq!((cost.is_known(), cost.streak()), (true, 200_000));
        // A barrier whose thread has lost its CPU counts as four times the average.
        cost.record(10_000_000);
        assert_eq!(cost.streak(), 2 * 137_500);
        cost.record(2_000);
        assert_eq!(cost.streak(), 4_000);
        (0..200).for_each(|_| cost.record(8_000));
        assert!((15_000..=16_000).contains(&cost.streak()), "{}", cost.streak());
    }

    #[test]
    fn a_release_yields_to_a_waiter_for_a_bounded_time() {
        fn release() {
            STAGED.with(|bias| {
                assert!(bias.is_wanted());
                bias.unlock_mutex();
                bias.yield_to_waiters();
                assert!(!bias.is_wanted(), "the waiting thread is asleep");
            });
        }
        STAGED.with(|bias| {
            let take = |me| bias.take_mutex(1, me, |_| unreachable!(), || None);
            bias.yield_to_waiters();
            take(1);
            assert_eq!(WAITED.get(), 0, "no thread waits");
            ROUND.set(release);
            take(2);
            assert!(WAITED.get() >= 10, "{} rounds", WAITED.get());
        });
    }
}
