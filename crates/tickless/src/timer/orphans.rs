//! Timers that were dropped while their callback ran, by somebody who could not wait for it.
//!
//! Dropping a timer waits until its callback is over, but a callback must not do that:
//!
//! | driver of base 0 | driver of base 1 |
//! |---|---|
//! | callback of a: drops b | callback of b: drops a |
//! | waits for b's callback | waits for a's callback |
//!
//! And if a is b, it would wait for itself. So what is dropped inside a callback while its own
//! callback runs, there or elsewhere, is left here, shut down, and is freed by the driver that
//! runs it when it has dealt with its batch, or by whoever comes here before.

use super::arena::Arena;
use super::frame::{self, Nudge, Runs};
use super::glue::{Bases, Task};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The set of timers whose orphans these are.
pub(super) trait Keeper: Nudge + 'static {
    /// Where they may still run.
    fn bases(&self) -> &Bases;
    /// Where their memory came from.
    fn arena(&self) -> &Arena;
    /// A callback panicked when it was dropped.
    fn callback_panicked(&self, payload: Box<dyn Any + Send>);
}

/// What waits to be freed, of one set of timers.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Is there anything? Written under the lock.
    any: AtomicBool,
    nodes: Mutex<Vec<Orphan>>,
}

/// A node that is shut down and belongs to nobody else.
#[derive(Debug)]
struct Orphan {
    node: NonNull<()>,
    glue: Task,
}

// SAFETY: it owns its node, whose closure is `Send`.
unsafe impl Send for Orphan {}

impl Orphans {
    /// Takes a node over whose callback may be running.
    ///
    /// # Safety
    /// The node is live and has this glue, its timer belongs to `set` and is shut down, and
    /// the caller gives up owning it.
    pub(super) unsafe fn adopt(&self, set: &impl Keeper, node: NonNull<()>, glue: Task) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.push(Orphan { node, glue });
        self.any.store(true, Ordering::Relaxed);
        drop(nodes);
        // The callback may have ended, and its driver have been here, a moment ago.
        self.free_ended(set);
    }

    /// Frees what does not run any more. A driver comes here after each batch.
    pub(super) fn free_ended(&self, set: &impl Keeper) {
        // SeqCst: of one who adopts and then looks whether the callback runs, and a driver that
        // ends the callback and then looks here, at least one sees the other.
        fence(Ordering::SeqCst);
        if self.any.load(Ordering::Relaxed) {
            self.free_found(set);
        }
    }

    #[cold]
    fn free_found(&self, set: &impl Keeper) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `adopt` was promised live nodes of `set`, and what is here is not freed.
        let is_over =
            |orphan: &mut Orphan| unsafe { !orphan.glue.is_running(set.bases(), orphan.node) };
        let ended: Vec<Orphan> = nodes.extract_if(.., is_over).collect();
        self.any.store(!nodes.is_empty(), Ordering::Relaxed);
        drop(nodes);
        // Counts as a callback: what is dropped here must not wait either.
        let free = || ended.into_iter().for_each(|orphan| orphan.free(set));
        frame::within(&Runs::nowhere(set), 0, free);
    }
}

impl Orphan {
    fn free(self, set: &impl Keeper) {
        // SAFETY: `adopt` was promised the one owner's node, and the callback is over.
        let free = || unsafe { self.glue.free(self.node, set.arena()) };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
            set.callback_panicked(payload);
        }
    }
}
