//! X4 (identity): timers that are freed in their own callback, and whose memory is reused.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, LATER, NOW, Stage, WRITTEN};
use crate::checker::{CheckedWord, yield_now};
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::platform::{Ordering, Word};

models! {
    memory_is_reused_at_once,
    a_detached_callback_publishes_the_one_before,
}

/// Goal: a callback frees its timer, and another thread makes a new one at the same address. The
/// new timer, armed on the same base, is not running, and no cancel waits for the old callback.
fn memory_is_reused_at_once<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW]);
    let handed_over = Arc::new(CheckedWord::new(0));
    let (by_callback, by_owner) = (Arc::clone(&handed_over), Arc::clone(&handed_over));
    let handler = stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            stage.shutdown(0);
            stage.bases.detach(stage.places[0].timer());
            stage.places[0].free_and_reuse(1);
            // Release: pairs with the Acquire below; the new owner sees a new timer.
            by_callback.store(1, Ordering::Release);
            yield_now();
            CallbackResult::Done
        });
    });
    let owner = stage.on(CPU0, move |stage| {
        while by_owner.load(Ordering::Acquire) == 0 {
            yield_now();
        }
        assert!(!stage.is_active(0), "the old callback is taken for its own");
        stage.arm(0, LATER);
        assert!(!stage.is_running(0));
        assert_eq!(stage.shutdown_sync(0), Cancel::Pending);
    });
    handler.join();
    owner.join();
    // Dropped here, where both threads have ended.
    drop(handed_over);
    assert_eq!((stage.fired(), stage.counts().cancelled), (1, 1));
    stage.settle();
}

/// Goal: when the next callback has detached itself, the writes of the one before are seen (X1).
fn a_detached_callback_publishes_the_one_before<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW, NOW]);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            if firing.task == 1 {
                stage.shutdown(1);
                stage.bases.detach(stage.places[1].timer());
                yield_now();
            }
            CallbackResult::Done
        });
    });
    if !stage.is_active(0) {
        assert_eq!(stage.seen(0), WRITTEN, "X1");
    }
    stage.join_and_settle([handler]);
}
