//! X4: timers that are freed in their own callback, and whose memory is used again.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage};
use super::world::World;
use tickless_core::bases::Family;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::platform::{Ordering, Word};

models! {
    memory_is_used_again_at_once,
    memory_is_used_again_elsewhere,
}

/// Goal: a callback frees its timer and hands the memory on; who arms a new one there at once, on
/// the same base, is at worst told to wait for the old one, and that ends.
fn memory_is_used_again_at_once<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    hand_on(&stage, move |stage| {
        stage.arm(0, LATER);
        assert_ne!(stage.shutdown_sync(0), Cancel::Idle, "it was pending");
    });
    assert_eq!((stage.fired(), stage.counts().cancelled), (1, 1));
    stage.settle();
}

/// Goal: the same, when the new timer is armed on another base, where it fires.
fn memory_is_used_again_elsewhere<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    hand_on(&stage, |stage| {
        C::go_to(CPU1);
        stage.arm(0, NOW);
        stage.expire(CPU1);
        assert_ne!(stage.shutdown_sync(0), Cancel::Pending, "it has fired");
    });
    assert_eq!((stage.fired(), stage.pending()), (2, 0));
    stage.settle();
}

/// Fires timer 0, whose callback frees it, makes a new one in its place and hands that on.
fn hand_on<C: Checker, L: Family<World<C>> + 'static>(
    stage: &std::sync::Arc<Stage<C, L>>,
    new_owner: impl FnOnce(&Stage<C, L>) + Send + 'static,
) {
    let handed = std::sync::Arc::new(C::Word::new(0));
    let over = std::sync::Arc::clone(&handed);
    let handler = stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            stage.places[0].free_and_use_again(1);
            // Release: pairs with the Acquire below; the new owner sees a new timer.
            over.store(1, Ordering::Release);
            CallbackResult::Done
        });
    });
    let owner = stage.on(CPU0, move |stage| {
        while handed.load(Ordering::Acquire) == 0 {
            C::yield_now();
        }
        new_owner(stage);
    });
    C::join(handler);
    C::join(owner);
}
