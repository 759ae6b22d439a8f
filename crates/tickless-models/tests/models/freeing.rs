//! X4: timers that are freed in their own callback, and whose memory is used again.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use super::world::World;
use tickless_core::bases::Family;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::platform::{Ordering, Word};

models! {
    memory_is_used_again_at_once,
    memory_is_used_again_elsewhere,
    a_detached_callback_publishes_the_one_before,
}

/// Goal: a callback frees its timer and hands the memory on. A new timer there, on the same base,
/// is not running, and no cancel of it waits for the old callback.
fn memory_is_used_again_at_once<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    hand_on(&stage, move |stage| {
        assert!(!stage.is_active(0), "the old callback is taken for its own");
        stage.arm(0, LATER);
        assert!(!stage.is_running(0));
        assert_eq!(stage.shutdown_sync(0), Cancel::Pending);
    });
    assert_eq!((stage.fired(), stage.counts().cancelled), (1, 1));
    stage.settle();
}

/// Goal: the new timer is armed on another base, where it fires.
fn memory_is_used_again_elsewhere<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    hand_on(&stage, |stage| {
        C::go_to(CPU1);
        stage.arm(0, NOW);
        stage.expire(CPU1);
        assert!(!stage.is_active(0));
        assert_eq!(stage.shutdown_sync(0), Cancel::Idle, "it has fired");
    });
    assert_eq!((stage.fired(), stage.pending()), (2, 0));
    stage.settle();
}

/// Goal: X1: a thread that finds a timer's callback over because the next one has detached itself
/// sees what the timer's callback wrote.
fn a_detached_callback_publishes_the_one_before<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            if firing.task == 1 {
                stage.shutdown(1);
                stage.bases.detach(stage.places[1].timer());
                C::yield_now();
            }
            CallbackResult::Done
        });
    });
    if !stage.is_active(0) {
        assert_eq!(stage.seen(0), WRITTEN, "X1");
    }
    C::join(handler);
    stage.settle();
}

/// Fires timer 0, whose callback frees it, makes a new one in its place and hands that on.
fn hand_on<C: Checker, L: Family<World<C>> + 'static>(
    stage: &std::sync::Arc<Stage<C, L>>,
    new_owner: impl FnOnce(&Stage<C, L>) + Send + 'static,
) {
    let handed = std::sync::Arc::new(C::Word::new(0));
    let (over, seen) = (std::sync::Arc::clone(&handed), std::sync::Arc::clone(&handed));
    let handler = stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            stage.shutdown(0);
            stage.bases.detach(stage.places[0].timer());
            stage.places[0].free_and_use_again(1);
            // Release: pairs with the Acquire below; the new owner sees a new timer.
            over.store(1, Ordering::Release);
            C::yield_now();
            CallbackResult::Done
        });
    });
    let owner = stage.on(CPU0, move |stage| {
        while seen.load(Ordering::Acquire) == 0 {
            C::yield_now();
        }
        new_owner(stage);
    });
    C::join(handler);
    C::join(owner);
    // Dropped here, where both threads have ended.
    drop(handed);
}
