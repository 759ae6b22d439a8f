//! Timers that were dropped while their callback ran, by a thread that could not wait for it.
//!
//! Dropping a timer waits until its callback has returned, but a callback must not do that:
//!
//! | driver of base 0 | driver of base 1 |
//! |---|---|
//! | callback of a: drops b | callback of b: drops a |
//! | waits for b's callback | waits for a's callback |
//!
//! If a and b are the same timer, its callback would wait for itself. So a timer that is dropped
//! inside any callback while its own callback runs is only shut down and put on a list. The driver
//! that runs its callback frees it after its batch of callbacks. A thread that puts another timer
//! on the list sometimes frees it earlier.

use super::arena::Arena;
use super::frame::{self, RecheckWaits, Runs};
use super::glue::{Bases, Task};
use crate::platform::locked::locked;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// The set of timers that orphans (the timers on the list) belong to.
pub(super) trait Keeper: RecheckWaits + 'static {
    fn bases(&self) -> &Bases;
    fn arena(&self) -> &Arena;
    fn callback_panicked(&self, payload: Box<dyn Any + Send>);
}

#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Whether `nodes` has any elements. Written under the lock of `nodes`, and read without it.
    any: AtomicBool,
    nodes: Mutex<Vec<Orphan>>,
}

/// Owns a node: the memory of a timer and its callback. The timer has been shut down.
#[derive(Debug)]
struct Orphan {
    node: NonNull<()>,
    glue: Task,
}

// SAFETY: an orphan owns its node, whose closure is `Send`.
unsafe impl Send for Orphan {}

impl Orphans {
    /// Takes over a node whose callback is perhaps running.
    ///
    /// # Safety
    /// The node is live, and `glue` is for its type. Its timer belongs to `set` and has been shut
    /// down. The caller is the node's only owner, and does not use it any more.
    pub(super) unsafe fn adopt(&self, set: &impl Keeper, node: NonNull<()>, glue: Task) {
        let mut nodes = locked(&self.nodes);
        nodes.push(Orphan { node, glue });
        self.any.store(true, Ordering::Relaxed);
        drop(nodes);
        // If the callback returned, and its driver checked this list, before the push, no driver
        // would free the node.
        self.free_ended(set);
    }

    /// Frees the timers whose callbacks have returned. Drivers call this after each batch. Returns
    /// whether there were any timers.
    pub(super) fn free_ended(&self, set: &impl Keeper) -> bool {
        // Relaxed: `adopt` sets `any` and then finds under the lock of the timer's base that the
        // callback runs. A driver marks the callback as ended under that lock, then checks `any`.
        // Whichever takes the lock later sees what the other has written, and frees the node.
        let any = self.any.load(Ordering::Relaxed);
        if any {
            self.free_found(set);
        }
        any
    }

    /// Frees the orphans whose callback has returned.
    #[cold]
    fn free_found(&self, set: &impl Keeper) {
        let mut nodes = locked(&self.nodes);
        // SAFETY: `adopt` requires live nodes of `set`, and a node is taken off before it is freed.
        let is_running =
            |orphan: &Orphan| unsafe { (orphan.glue.is_running)(set.bases(), orphan.node) };
        let (running, ended): (Vec<Orphan>, Vec<Orphan>) = nodes.drain(..).partition(is_running);
        *nodes = running;
        self.any.store(!nodes.is_empty(), Ordering::Relaxed);
        drop(nodes);
        // Freeing counts as a callback: the closures that are freed here can drop other timers, and
        // those drops must not wait for callbacks.
        let free = || ended.into_iter().for_each(|orphan| orphan.free(set));
        frame::within(&Runs::nowhere(set), 0, free);
    }
}

impl Orphan {
    fn free(self, set: &impl Keeper) {
        // SAFETY: the caller of `adopt` was the node's only owner, and the callback has returned.
        let free = || unsafe { (self.glue.free)(self.node, set.arena()) };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
            set.callback_panicked(payload);
        }
    }
}
