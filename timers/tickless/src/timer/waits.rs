//! The wait graph: which thread waits for which callback or lock, to detect deadlocks.
//!
//! A thread that is about to sleep in a synchronous cancel enters its wait into one table, and then
//! follows the waits: the thread that runs the callback can itself wait for another callback, or
//! for a [`CallbackLock`](crate::callback::CallbackLock). If they lead back to the caller, its wait
//! is refused (X6). The thread whose wait closes a circle finds it, because all threads enter and
//! follow under one mutex. A wait for a lock cannot be refused. A thread that enters one makes the
//! threads that wait for its callbacks check again: those that are in a circle give up instead.

use super::frame;
use crate::platform::fork::ProcessLock;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the number of the calling thread. It is never 0, and no other thread ever gets it.
pub fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static THIS: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    THIS.with(|this| *this)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// The callback of the timer at this address. A timer that is waited for is not freed, so the
    /// address belongs to no other.
    CallbackOf(usize),
    Lock(Holder),
}

/// The word in which a lock keeps the number of the thread that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder(NonNull<AtomicU64>);

// SAFETY: it points to an atomic, which any thread can read while it exists.
unsafe impl Send for Holder {}

impl Holder {
    /// Makes a reference to the word of a lock for which the calling thread is about to wait.
    ///
    /// # Safety
    /// The word stays valid and in place while the `Holder` is in the table of waits.
    pub unsafe fn new(holder: &AtomicU64) -> Holder {
        Holder(NonNull::from(holder))
    }

    /// Returns the holding thread. Call this only while the `Holder` is in the table of waits.
    fn thread(self) -> u64 {
        // SAFETY: `new` requires that the word is valid while the `Holder` is in the table, and
        // every caller has found the `Holder` in the table, under the table's mutex.
        unsafe { self.0.as_ref() }.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Circle {
    Callbacks,
    Lock,
}

#[derive(Debug)]
struct Wait {
    thread: u64,
    /// The timers whose callbacks the thread is in.
    within: Vec<usize>,
    goal: Goal,
}

static WAITS: ProcessLock<Vec<Wait>> = ProcessLock::new(Vec::new());

/// A wait in the table of waits. Dropping this removes the wait from the table.
#[derive(Debug)]
pub struct Entered<'a>(PhantomData<&'a AtomicU64>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let thread = this_thread();
        WAITS.lock().retain(|wait| wait.thread != thread);
    }
}

/// Enters a wait of this thread. If it closes a circle of waits, returns the kind of circle.
pub fn enter(goal: Goal) -> (Entered<'static>, Option<Circle>) {
    let (thread, within) = (this_thread(), frame::timers());
    let mut waits = WAITS.lock();
    waits.retain(|wait| wait.thread != thread);
    waits.push(Wait { thread, within, goal });
    (Entered(PhantomData), circle(&waits, thread))
}

/// Enters a wait of this thread for the lock that has this word, and makes the threads that wait
/// for this thread's callbacks check for a deadlock again.
pub fn enter_lock(holder: &AtomicU64) -> Entered<'_> {
    // SAFETY: the wait is removed from the table before the borrow of `holder` ends.
    let (entered, _) = enter(Goal::Lock(unsafe { Holder::new(holder) }));
    // Copy the goals first: checking again takes a base's lock, which is forbidden while the table
    // of waits is locked.
    let goals: Vec<Goal> = WAITS.lock().iter().map(|wait| wait.goal).collect();
    frame::recheck_waiters(|timer| goals.contains(&Goal::CallbackOf(timer)));
    entered
}

/// Follows the waits, beginning with that of `thread`: each leads to a callback or lock, and so to
/// the thread that runs or holds it. If they lead back to `thread`, returns the kind of circle.
fn circle(waits: &[Wait], thread: u64) -> Option<Circle> {
    let mine = waits.iter().find(|wait| wait.thread == thread)?;
    let mut goal = mine.goal;
    // Each step goes to the wait of another thread. The number of steps is limited, because the
    // waits can lead into a circle of other threads. This thread can ignore such a circle: the
    // thread that closed it is about to remove its wait.
    for _ in 0..=waits.len() {
        let next = match goal {
            Goal::CallbackOf(timer) if mine.within.contains(&timer) => {
                return Some(Circle::Callbacks);
            }
            Goal::Lock(holder) if holder.thread() == thread => return Some(Circle::Lock),
            Goal::CallbackOf(timer) => waits.iter().find(|wait| wait.within.contains(&timer)),
            Goal::Lock(holder) => waits.iter().find(|wait| wait.thread == holder.thread()),
        };
        goal = next?.goal;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(thread: u64, within: &[usize], goal: Goal) -> Wait {
        Wait { thread, within: within.to_vec(), goal }
    }

    /// Goal: X6 (endless waits are refused).
    #[test]
    fn finds_circles_only() {
        let callback = Goal::CallbackOf;
        let mut waits = vec![wait(1, &[0], callback(1)), wait(2, &[1], callback(2))];
        assert_eq!(circle(&waits, 1), None, "the third does not wait");
        waits.push(wait(3, &[2], callback(3)));
        assert_eq!(circle(&waits, 3), None);
        waits.push(wait(4, &[7, 3], callback(0)));
        for thread in 1..=4 {
            assert_eq!(circle(&waits, thread), Some(Circle::Callbacks));
        }
        waits.push(wait(5, &[], callback(1)));
        assert_eq!(circle(&waits, 5), None, "it is not in the circle that it waits for");
        let holder = AtomicU64::new(9);
        // SAFETY: the word outlives the table of this test.
        waits[3].goal = Goal::Lock(unsafe { Holder::new(&holder) });
        assert_eq!(circle(&waits, 4), None, "the holder does not wait");
        holder.store(5, Ordering::Relaxed);
        assert_eq!(circle(&waits, 5), Some(Circle::Lock));
        assert_eq!(circle(&waits, 9), None, "it does not wait");
    }
}
