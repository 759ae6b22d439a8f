//! Telling the child of a fork from its parent.
//!
//! A child has its parent's memory and none of its threads: drivers are gone, and a lock that
//! one of them held at that moment is held for ever. So in a child nothing may wait for
//! anything that came from the parent, and what the library has once for a process it has anew.
//!
//! Asking for the process id would be a system call for every arming. Instead the C library
//! calls back in each child, and that counts: one load of a line that never changes.

use crate::platform::relax::relax;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Goes up in every child, so that it differs from what it was in its parent.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// What is never left behind belongs to generation zero of this, which stays.
static NO_GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that something belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    generation: u32,
    /// Whose count that was. Kept by address, since a crate that inlines this would otherwise look
    /// it up in a table each time.
    present: &'static AtomicU32,
}

impl Process {
    /// This one.
    pub fn this() -> Process {
        // Not a `Once`: a child that was forked while another thread was in it would wait for that
        // for ever. Two threads may both get here; children then count up by two.
        static COUNTED: AtomicBool = AtomicBool::new(false);
        // Acquire: pairs with the Release below, so that whoever has a process has it counted.
        if !COUNTED.load(Ordering::Acquire) {
            // SAFETY: `in_child` stays, and does nothing that a child may not do between fork and
            // exec. A refusal, for lack of memory, leaves children untold.
            #[cfg(linux_platform)]
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
            }
            COUNTED.store(true, Ordering::Release);
        }
        Process { generation: GENERATION.load(Ordering::Relaxed), present: &GENERATION }
    }

    /// Whichever it is: for what a child may go on using.
    pub fn any() -> Process {
        Process { generation: 0, present: &NO_GENERATION }
    }

    /// Is it this one, and not its parent?
    #[inline]
    pub fn is_this(self) -> bool {
        // Relaxed: only written where there is one thread.
        self.generation == self.present.load(Ordering::Relaxed)
    }
}

#[cfg(linux_platform)]
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A lock around what a process has once (K4). The child of a fork has one of its own: free, with a
/// default value in it, whichever thread of its parent held it, and whatever that had come to. What
/// the parent had in it is neither used nor dropped in the child.
///
/// For a few instructions under it, and for what happens once: who waits spins, then sleeps for
/// moments.
#[derive(Debug)]
pub struct ProcessLock<T> {
    /// One more than the generation of the process that has a value in here, twice; and one more
    /// than that while a thread of it holds the lock.
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and there is one guard at a time.
unsafe impl<T: Send> Sync for ProcessLock<T> {}

/// The right to use what a [`ProcessLock`] guards.
#[derive(Debug)]
pub struct ProcessGuard<'a, T> {
    lock: &'a ProcessLock<T>,
    /// Like a `&mut T` to other threads: not as the lock, which is `Sync` for any `T: Send`.
    value: PhantomData<&'a mut T>,
}

impl<T> ProcessLock<T> {
    /// A lock that nobody holds.
    pub const fn new(value: T) -> ProcessLock<T> {
        ProcessLock { state: AtomicU32::new(2), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> ProcessLock<T> {
    /// Waits until the lock is free and takes it.
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
                    // SAFETY: this thread has just taken the lock. What is overwritten may be half
                    // changed: it is not looked at.
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
        // SAFETY: this guard is the only one, and it is borrowed for good.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for ProcessGuard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock`. The process is that of `lock`: a fork leaves
        // the child no guard but that of the thread which forked, whose process has changed.
        let state = self.lock.state.load(Ordering::Relaxed);
        self.lock.state.store(state & !1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one guard at a time; what stands in it stays, within one process.
    #[test]
    fn excludes() {
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

    /// Goal: K4: whoever held it in another process, here it is free and has a fresh value.
    #[test]
    fn a_child_has_its_own() {
        let lock = ProcessLock::new(vec![1, 2, 3]);
        lock.lock().push(4);
        assert_eq!(*lock.lock(), [1, 2, 3, 4]);
        core::mem::forget(lock.lock());
        // As if this were a child: its parent's generation was the one before.
        lock.state.fetch_sub(2, Ordering::Relaxed);
        assert!(lock.lock().is_empty());
        lock.lock().push(5);
        assert_eq!(*lock.lock(), [5]);
    }
}
