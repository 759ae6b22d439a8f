//! A timer with its callback in one allocation, and the end of both.
//!
//! The allocation is a node: the core's timer and behind it the user's closure, a single cache
//! line when the closure captures at most 16 bytes. The core knows the timer; this file knows
//! that it is a node.
//!
//! # Lifetime
//!
//! A node is freed when its [`Owned`] is dropped and the callback is running nowhere. A closure
//! may own the very timer that it belongs to and drop it while it runs (X4): then the node is
//! marked and freed by the driver once the closure has returned.

use super::Host;
use crate::fired::Fired;
use crate::timers::Shared;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tickless_core::base::Family;
use tickless_core::cancel::Cancel;
use tickless_core::expiry::{Firing, Verdict};
use tickless_core::link::{Timer, TimerRef};

/// What the core hands back when a timer fires: how to treat the node.
pub type Task = &'static Glue;

/// The two things that depend on the closure's type.
#[derive(Debug)]
pub struct Glue {
    call: unsafe fn(NonNull<()>, &mut Fired<'_>),
    free: unsafe fn(NonNull<()>),
}

/// The allocation behind a timer.
#[repr(C, align(64))]
struct Node<L, F> {
    timer: Timer<Host, L>,
    callback: UnsafeCell<F>,
}

thread_local! {
    /// The node whose callback this thread is running, and whether it is to be freed then.
    static RUNNING: Cell<(*const (), bool)> = const { Cell::new((core::ptr::null(), false)) };
}

/// The one owner of a node.
pub(crate) struct Owned<L: Family> {
    node: NonNull<()>,
    glue: Task,
    shared: Arc<Shared>,
    family: PhantomData<fn(L)>,
}

// SAFETY: the closure is `Send` and is only run by one driver at a time; everything else behind
// the pointer is the core's, which is made for many threads.
unsafe impl<L: Family> Send for Owned<L> {}
// SAFETY: all shared use goes through the core.
unsafe impl<L: Family> Sync for Owned<L> {}

impl<L: Family> fmt::Debug for Owned<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("active", &self.shared.bases.is_active(self.timer())).finish()
    }
}

impl<L: Family> Owned<L> {
    pub(crate) fn new<F>(shared: Arc<Shared>, callback: F) -> Owned<L>
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        let glue = Node::<L, F>::GLUE;
        let node =
            Box::new(Node::<L, F> { timer: Timer::new(glue), callback: UnsafeCell::new(callback) });
        let node = NonNull::from(Box::leak(node)).cast();
        Owned { node, glue, shared, family: PhantomData }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The timer, for the bases of [`shared`](Owned::shared) and no others.
    pub(crate) fn timer(&self) -> TimerRef<Host, L> {
        // SAFETY: the node stays where it is until `drop`, which shuts the timer down first;
        // this reference is only used with the bases that `shared` holds.
        unsafe { TimerRef::new(self.node.cast()) }
    }
}

impl<L: Family> Drop for Owned<L> {
    fn drop(&mut self) {
        let (running, _) = RUNNING.get();
        if core::ptr::eq(running, self.node.as_ptr()) {
            self.shared.bases.shutdown(self.timer());
            RUNNING.set((running, true));
            return;
        }
        let found = self.shared.bases.shutdown_and_wait(self.timer());
        debug_assert!(found != Cancel::Running || !self.shared.bases.is_running(self.timer()));
        // SAFETY: the timer is shut down and runs nowhere, and this was the node's one owner.
        unsafe { (self.glue.free)(self.node) }
    }
}

impl<L, F: FnMut(&mut Fired<'_>)> Node<L, F> {
    const GLUE: Task = &Glue { call: Self::call, free: Self::free };

    /// # Safety
    /// `node` is a live `Node<L, F>`, and nobody else calls its closure meanwhile.
    unsafe fn call(node: NonNull<()>, fired: &mut Fired<'_>) {
        // SAFETY: as promised; the core never runs a timer twice at once (X2).
        let callback = unsafe { &mut *(*node.cast::<Self>().as_ptr()).callback.get() };
        callback(fired);
    }

    /// # Safety
    /// `node` came out of `Owned::new` with this type, and nobody uses it any more.
    unsafe fn free(node: NonNull<()>) {
        // SAFETY: as promised.
        drop(unsafe { Box::from_raw(node.cast::<Self>().as_ptr()) });
    }
}

/// Runs a timer's callback: what a driver does with everything that its base hands it.
///
/// A panic ends the callback, not the driver; it is counted and handed to the reporter (H3).
pub(crate) fn run(shared: &Shared, firing: &Firing<Host>) -> Verdict {
    let node = firing.timer;
    let mut fired = Fired::new(shared, firing);
    let outer = RUNNING.replace((node.as_ptr(), false));
    // SAFETY: the core hands out a timer that was put in by `Owned::timer`, so this is a live
    // node with its own glue; `Owned::drop` waits, or leaves the node to us.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { (firing.task.call)(node, &mut fired) }));
    let (_, dropped) = RUNNING.replace(outer);
    let verdict = if ended.is_ok() { fired.verdict() } else { Verdict::Done };
    if let Err(payload) = ended {
        shared.callback_panicked(payload);
    }
    if dropped {
        // SAFETY: its owner is gone, and the callback that was left to finish has returned.
        let freed = catch_unwind(AssertUnwindSafe(|| unsafe { (firing.task.free)(node) }));
        if let Err(payload) = freed {
            shared.callback_panicked(payload);
        }
        return Verdict::Done;
    }
    verdict
}
