//! Timers that were dropped while their callback ran, by a thread that could not wait for it.
//!
//! Dropping a timer waits until its callback has returned, but a callback must not do that:
//!
//! | driver of base 0 | driver of base 1 |
//! |---|---|
//! | callback of a: drops b | callback of b: drops a |
//! | waits for b's callback | waits for a's callback |
//!
//! If a is b, it would wait for itself. So a timer that is dropped inside a callback while its own
//! callback runs, there or elsewhere, is shut down and left here. The driver that runs it frees it
//! after its batch, or any thread that leaves another timer here before that.

use super::arena::Arena;
use super::frame::{self, RecheckWaits, Runs};
use super::glue::{Bases, Task};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The set of timers that orphans belong to.
pub(super) trait Keeper: RecheckWaits + 'static {
    /// The bases that may run them.
    fn bases(&self) -> &Bases;
    /// The arena that their memory came from.
    fn arena(&self) -> &Arena;
    /// Reports that a callback panicked when it was dropped.
    fn callback_panicked(&self, payload: Box<dyn Any + Send>);
}

/// The timers of one set that wait to be freed.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Whether there are any. Written under the lock.
    any: AtomicBool,
    nodes: Mutex<Vec<Orphan>>,
}

/// A node that has been shut down, and its one owner.
#[derive(Debug)]
struct Orphan {
    node: NonNull<()>,
    glue: Task,
}

// SAFETY: it owns its node, whose closure is `Send`.
unsafe impl Send for Orphan {}

impl Orphans {
    /// Takes over a node whose callback may be running.
    ///
    /// # Safety
    /// The node is live and has this glue, its timer belongs to `set` and has been shut down, and
    /// the caller, its one owner, gives it up.
    pub(super) unsafe fn adopt(&self, set: &impl Keeper, node: NonNull<()>, glue: Task) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.push(Orphan { node, glue });
        self.any.store(true, Ordering::Relaxed);
        drop(nodes);
        // The callback may have returned, and its driver have been here, before the push.
        self.free_ended(set);
    }

    /// Frees the timers whose callbacks have returned. Drivers call this after each batch.
    pub(super) fn free_ended(&self, set: &impl Keeper) {
        // SeqCst: one thread adopts and then checks whether the callback runs; a driver ends the
        // callback and then checks `any`. At least one sees what the other has written.
        fence(Ordering::SeqCst);
        if self.any.load(Ordering::Relaxed) {
            self.free_found(set);
        }
    }

    #[cold]
    fn free_found(&self, set: &impl Keeper) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `adopt` requires live nodes of `set`, and a node leaves the list to be freed.
        let is_running =
            |orphan: &Orphan| unsafe { orphan.glue.is_running(set.bases(), orphan.node) };
        let (running, ended): (Vec<Orphan>, Vec<Orphan>) = nodes.drain(..).partition(is_running);
        *nodes = running;
        self.any.store(!nodes.is_empty(), Ordering::Relaxed);
        drop(nodes);
        // Counts as a callback: what the closures drop must not wait either.
        let free = || ended.into_iter().for_each(|orphan| orphan.free(set));
        frame::within(&Runs::nowhere(set), 0, free);
    }
}

impl Orphan {
    fn free(self, set: &impl Keeper) {
        // SAFETY: `adopt` requires the node's one owner, and the callback has returned.
        let free = || unsafe { self.glue.free(self.node, set.arena()) };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
            set.callback_panicked(payload);
        }
    }
}
