//! Detection of a forked child, and locks that survive a fork.
//!
//! A forked child has only the thread that forked. A lock that another thread held at that moment
//! is never released. So a child must not wait for anything that it inherited, and it creates its
//! own copy of each global of the library.
//!
//! The C library runs a handler in each child, which increments a global count: checking it costs
//! one load. The child of a `_Fork`, a `vfork` or a bare system call is not counted. Such a child
//! is only allowed to call `exec` or `_exit`.

use crate::platform::relax::relax;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Incremented in every forked child, so that it differs from its value in the parent.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Identifies the process that a value belongs to, to tell a forked child from its parent.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    generation: u32,
    /// Refers to `GENERATION`, with which `is_this` compares. Other crates, into which `is_this` is
    /// inlined, would otherwise have to look up the address of the static.
    current: &'static AtomicU32,
}

impl Process {
    /// The calling process.
    pub fn this() -> Process {
        Process { generation: GENERATION.load(Ordering::Relaxed), current: &GENERATION }
    }

    /// Returns whether this is the calling process: `false` in a forked child.
    #[inline]
    pub fn is_this(self) -> bool {
        // Relaxed: the count is written only in a new child, while it has one thread.
        self.generation == self.current.load(Ordering::Relaxed)
    }
}

/// A `fn()` that a forked child calls first; null if there is none.
static IN_CHILD: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// From now on each forked child calls this function. There is one such function.
pub fn call_in_child(function: fn()) {
    IN_CHILD.store(function as *mut (), Ordering::Relaxed);
}

/// Returns whether this process was forked since the library was loaded.
#[cfg(linux_platform)]
pub fn is_child() -> bool {
    GENERATION.load(Ordering::Relaxed) != 0
}

/// Counts forks from the loading of the library on, not from its first use: a child that is the
/// first to use it has inherited locks of the standard library, too. The number in the section's
/// name is a priority: this runs before the constructors of C++.
#[cfg(linux_platform)]
#[used]
#[unsafe(link_section = ".init_array.00099")]
static WHEN_LOADED: extern "C" fn() = count_forks;

#[cfg(linux_platform)]
extern "C" fn count_forks() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        let call = IN_CHILD.load(Ordering::Relaxed);
        if !call.is_null() {
            // SAFETY: only `call_in_child` writes it.
            unsafe { core::mem::transmute::<*mut (), fn()>(call)() };
        }
    }
    // SAFETY: `in_child` is a function of this program, and only writes an atomic and a word of its
    // thread, which a child is allowed to do between fork and exec. Registration fails only for
    // lack of memory; children are then not detected.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

/// A value that only the process that made it drops. A forked child leaks it, because another
/// thread of the parent has perhaps left it half changed.
#[derive(Debug)]
pub struct OfProcess<T> {
    process: Process,
    value: ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> OfProcess<T> {
        OfProcess { process: Process::this(), value: ManuallyDrop::new(value) }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process.is_this() {
            // SAFETY: nothing uses the value afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// A lock around a value that each process has once. In a forked child it is free and holds a
/// default value; the child neither uses nor drops the parent's value. A waiting thread is not
/// woken, but spins, then sleeps for short intervals: hold the lock only briefly.
#[derive(Debug)]
pub struct ProcessLock<T> {
    /// `2 * (generation + 1)` of the value's process, plus 1 while a thread holds the lock.
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and there is one guard at a time.
unsafe impl<T: Send> Sync for ProcessLock<T> {}

#[derive(Debug)]
pub struct ProcessGuard<'a, T> {
    lock: &'a ProcessLock<T>,
    /// Gives the guard the auto traits of `&mut T`. Without this field it would be `Sync` for any
    /// `T: Send`, as the lock is.
    value: PhantomData<&'a mut T>,
}

impl<T> ProcessLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> ProcessLock<T> {
        ProcessLock { state: AtomicU32::new(2), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> ProcessLock<T> {
    /// Takes the lock. Does not wait for a thread of the parent process.
    pub fn lock(&self) -> ProcessGuard<'_, T> {
        let Process { generation, .. } = Process::this();
        let free = generation.wrapping_add(1).wrapping_mul(2);
        let mut round = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state == free | 1 {
                relax(round);
                round = round.saturating_add(1);
                continue;
            }
            // Acquire: pairs with the Release in `drop`.
            let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
            if self.state.compare_exchange(state, free | 1, taken, not).is_ok() {
                if state != free {
                    // SAFETY: this thread has just taken the lock. A thread of the parent has
                    // perhaps left the old value half changed; `write` neither reads nor drops it.
                    unsafe { self.value.get().write(T::default()) };
                }
                return ProcessGuard { lock: self, value: PhantomData };
            }
        }
    }
}

impl<T> Deref for ProcessGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for ProcessGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is mutably borrowed.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for ProcessGuard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock`. If this thread forked while it held the guard,
        // the state in the child still has the parent's generation. So clearing the bit there does
        // not release a lock that the child has taken.
        let state = self.lock.state.load(Ordering::Relaxed);
        self.lock.state.store(state & !1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_guard_at_a_time() {
        static LOCK: ProcessLock<(u64, u64)> = ProcessLock::new((0, 0));
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..rounds {
                        let mut pair = LOCK.lock();
                        pair.0 += 1;
                        assert_eq!(pair.1 + 1, pair.0, "two threads were inside");
                        pair.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*LOCK.lock(), (3 * rounds, 3 * rounds));
    }

    /// Goal: in a forked child the lock is free and has a default value, although a thread of the
    /// parent held it (K4: a child does not wait for inherited locks).
    #[test]
    fn a_child_has_its_own() {
        let lock = ProcessLock::new(vec![1, 2, 3]);
        lock.lock().push(4);
        assert_eq!(*lock.lock(), [1, 2, 3, 4]);
        core::mem::forget(lock.lock());
        // Simulates a fork: the lock's state now has the generation of a parent of this process.
        lock.state.fetch_sub(2, Ordering::Relaxed);
        assert!(lock.lock().is_empty());
        lock.lock().push(5);
        assert_eq!(*lock.lock(), [5]);
    }
}
