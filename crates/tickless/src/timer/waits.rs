//! Who waits for whom: what tells a wait from a deadlock (X6).
//!
//! A thread that cancels synchronously waits until some runner of some base is through with a
//! callback. That runner may itself be waiting, inside the callback: for another callback, or
//! for a [`CallbackLock`](crate::callback::CallbackLock) lock. Everybody who waits says so in one
//! table, and then follows the waits from there; who comes back to itself would wait for ever.
//!
//! The table is only used by threads that are about to sleep. Whoever closes a circle sees it,
//! because all enter themselves before they look, under one mutex. If the one who closes it
//! waits for a lock, which cannot be refused, it has the cancellers in the circle look again.

use super::frame::{self, CallbackId};
use crate::platform::fork::ProcessLock;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number for each thread that has asked for one; never 0.
pub fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static THIS: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    THIS.with(|this| *this)
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// That this runner is through with its callback.
    Callback(CallbackId),
    /// That whoever has a lock gives it back.
    Lock(Holder),
}

/// Where a lock says which thread has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder(NonNull<AtomicU64>);

// SAFETY: it leads to an atomic, which may be read from anywhere while it is there.
unsafe impl Send for Holder {}

impl Holder {
    /// Of a lock that the calling thread is about to wait for.
    ///
    /// # Safety
    /// The word stays where it is for as long as this is entered as somebody's goal.
    pub unsafe fn new(holder: &AtomicU64) -> Holder {
        Holder(NonNull::from(holder))
    }

    /// The thread that has the lock, or 0. Only while this is somebody's goal.
    fn thread(self) -> u64 {
        // SAFETY: as `new` was promised; goals are looked at under the table's mutex only.
        unsafe { self.0.as_ref() }.load(Ordering::Relaxed)
    }
}

/// Why a wait would never end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Circle {
    /// Through callbacks that wait for each other.
    Callbacks,
    /// Through a lock that the calling thread has.
    Lock,
}

#[derive(Debug)]
struct Wait {
    thread: u64,
    /// The callbacks that the thread is in.
    within: Vec<CallbackId>,
    goal: Goal,
}

static WAITS: ProcessLock<Vec<Wait>> = ProcessLock::new(Vec::new());

/// A wait that has been entered into the table. Dropping it takes it out.
#[derive(Debug)]
pub struct Entered<'a>(PhantomData<&'a AtomicU64>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let thread = this_thread();
        WAITS.lock().retain(|wait| wait.thread != thread);
    }
}

/// Enters that this thread waits, and looks whether that would ever end.
pub fn enter(goal: Goal) -> (Entered<'static>, Option<Circle>) {
    let (thread, within) = (this_thread(), frame::callbacks());
    let mut waits = WAITS.lock();
    waits.retain(|wait| wait.thread != thread);
    waits.push(Wait { thread, within, goal });
    (Entered(PhantomData), circle(&waits, thread))
}

/// Enters that this thread waits for the lock whose holder this word names, and has those look
/// again who wait for this thread's callbacks.
pub fn enter_lock(holder: &AtomicU64) -> Entered<'_> {
    // SAFETY: the entry ends with the borrow at the latest.
    let (entered, _) = enter(Goal::Lock(unsafe { Holder::new(holder) }));
    look_again();
    entered
}

/// Has whoever waits for this thread's callbacks look again whether that would ever end.
fn look_again() {
    // Not under the table's mutex: a nudge takes a base's lock.
    let goals: Vec<Goal> = WAITS.lock().iter().map(|wait| wait.goal).collect();
    frame::nudge_waiters(|callback| goals.contains(&Goal::Callback(callback)));
}

/// Does the wait of this thread lead back to it?
fn circle(waits: &[Wait], thread: u64) -> Option<Circle> {
    let mine = waits.iter().find(|wait| wait.thread == thread)?;
    let mut goal = mine.goal;
    // Every step goes to another thread's wait, and a circle without this thread has been seen
    // by whoever closed it; the bound is for that one, until it has given up.
    for _ in 0..=waits.len() {
        let next = match goal {
            Goal::Callback(callback) if mine.within.contains(&callback) => {
                return Some(Circle::Callbacks);
            }
            Goal::Lock(holder) if holder.thread() == thread => return Some(Circle::Lock),
            Goal::Callback(callback) => waits.iter().find(|wait| wait.within.contains(&callback)),
            Goal::Lock(holder) => waits.iter().find(|wait| wait.thread == holder.thread()),
        };
        goal = next?.goal;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_core::bases::running::Runner;
    use tickless_core::time::CpuId;

    fn id(cpu: u16) -> CallbackId {
        CallbackId { set: 8, cpu: CpuId(cpu), runner: Runner::Handler, timer: 0 }
    }

    fn wait(thread: u64, within: &[u16], goal: Goal) -> Wait {
        let within = within.iter().map(|cpu| id(*cpu)).collect();
        Wait { thread, within, goal }
    }

    /// Goal: X6: a circle is seen however long it is, and nothing else is.
    #[test]
    fn finds_circles_and_nothing_else() {
        let callback = |cpu| Goal::Callback(id(cpu));
        let mut waits = vec![wait(1, &[0], callback(1)), wait(2, &[1], callback(2))];
        assert_eq!(circle(&waits, 1), None, "the third is at work");
        waits.push(wait(3, &[2], callback(3)));
        assert_eq!(circle(&waits, 3), None);
        waits.push(wait(4, &[7, 3], callback(0)));
        for thread in 1..=4 {
            assert_eq!(circle(&waits, thread), Some(Circle::Callbacks));
        }
        waits.push(wait(5, &[], callback(1)));
        assert_eq!(circle(&waits, 5), None, "it waits for a circle that it is not in");
        let holder = AtomicU64::new(9);
        // SAFETY: the word outlives the table of this test.
        waits[3].goal = Goal::Lock(unsafe { Holder::new(&holder) });
        assert_eq!(circle(&waits, 4), None, "the holder is at work");
        holder.store(5, Ordering::Relaxed);
        assert_eq!(circle(&waits, 5), Some(Circle::Lock));
        assert_eq!(circle(&waits, 9), None, "it does not wait");
    }
}
