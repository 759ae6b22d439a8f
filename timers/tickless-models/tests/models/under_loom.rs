//! The checker loom.

use crate::models::exploring::{Depth, primitives};
use crate::models::word::word;
use loom::sync::atomic::AtomicU64;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::CpuId;

pub const NAME: &str = "loom";

primitives!(loom);

/// Explores a model in all schedules within the bounds. Panics if the model does in one of them.
pub fn explore(depth: Depth, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(depth.preemptions));
    builder.max_branches = builder.max_branches.max(10_000);
    builder.check(model);
}

/// An atomic word that loom observes. All other uses must happen before its drop.
pub struct CheckedWord {
    word: AtomicU64,
    /// Written before each use of the word. When loom 0.7 looks for schedules to explore, it only
    /// considers the last use of an atomic: a thread that loads a word and then writes it hides the
    /// earlier load of another thread. Writes to this word hide nothing, since they are dependent.
    turns: AtomicU64,
}

impl CheckedWord {
    fn turn(&self) -> &AtomicU64 {
        // Relaxed: must not order anything for the code under test.
        self.turns.fetch_add(1, Ordering::Relaxed);
        &self.word
    }
}

word!(CheckedWord, |value| CheckedWord { word: AtomicU64::new(value), turns: AtomicU64::new(0) });

impl Drop for CheckedWord {
    /// Loom fails here if a use of the word did not happen before: its memory is reused next.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.word.with_mut(|_| ());
        }
    }
}
