//! X1, X3, X10: a canceller meets a handler.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use tickless_core::base::Family;
use tickless_core::cancel::Cancel;
use tickless_core::expiry::Verdict;
use tickless_core::queue::Window;

models! {
    cancel_against_fire,
    shutdown_and_wait_against_fire,
    watching_against_fire,
    waiting_for_one_of_two,
    cancel_against_restart,
    cancel_against_start_inside,
    shutdown_and_wait_against_restarts,
    cancel_against_cancel_against_fire,
}

/// Goal: an arming is cancelled or fires, and whoever finds the timer idle sees what its callback
/// wrote and may free it (X1, X10).
fn cancel_against_fire<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.fire(CPU0));
    let canceller = stage.on(CPU1, |stage| match stage.cancel(0) {
        Cancel::Pending => stage.places[0].free_and_use_again(0),
        Cancel::Idle => {
            assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
            stage.places[0].free_and_use_again(0);
        }
        Cancel::Running => {}
    });
    C::join(handler);
    C::join(canceller);
    let sum = stage.counts();
    assert_eq!((sum.armed, stage.pending()), (1, 0));
    stage.settle();
}

/// Goal: who has waited sees what the callback wrote, and may free the timer (X1); if the arming
/// was cancelled, the callback does not begin (X10).
fn shutdown_and_wait_against_fire<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.fire(CPU0));
    let found = stage.shutdown_and_wait(0);
    let expected = if found == Cancel::Pending { 0 } else { WRITTEN };
    assert_eq!(stage.seen(0), expected, "X1: what the callback wrote");
    assert!(stage.start(0, NOW).is_err() && !stage.is_active(0), "X5");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
    stage.settle();
}

/// Goal: the same for who only looks and takes no lock.
fn watching_against_fire<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.fire(CPU0));
    while stage.is_active(0) {
        C::yield_now();
    }
    assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    stage.settle();
}

/// Goal: the same when the handler has gone on to another timer before the waiter looked.
fn waiting_for_one_of_two<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.fire(CPU0));
    while stage.is_active(0) {
        C::yield_now();
    }
    assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired(), 2);
    stage.settle();
}

/// Goal: a cancel takes a restart back or comes before it, and nothing is lost (X10).
fn cancel_against_restart<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.fire_with(CPU0, |_| Verdict::Restart(Window::new(LATER, LATER)));
    });
    let canceller = stage.on(CPU1, |stage| match stage.cancel(0) {
        Cancel::Idle => panic!("it is pending or runs all the time (R10)"),
        Cancel::Pending | Cancel::Running => {}
    });
    C::join(handler);
    C::join(canceller);
    stage.settle();
    stage.drain();
}

/// Goal: the same for a timer that its callback starts by itself.
fn cancel_against_start_inside<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.fire_with(CPU0, |firing| {
            stage.arm(firing.task, LATER);
            Verdict::Done
        });
    });
    let canceller = stage.on(CPU1, |stage| {
        assert_ne!(stage.cancel(0), Cancel::Idle, "it is pending or runs all the time (R10)");
    });
    C::join(handler);
    C::join(canceller);
    stage.settle();
    stage.drain();
}

/// Goal: waiting for a callback that always restarts its timer ends, and ends that (X3, X5).
fn shutdown_and_wait_against_restarts<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.fire_with(CPU0, |firing| Verdict::Restart(firing.window));
    });
    stage.shutdown_and_wait(0);
    let fired = stage.seen(0) == WRITTEN;
    assert!(!stage.is_active(0), "X5: restarted after its shut-down");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired() > 0, fired, "X1: what the callback wrote");
    assert_eq!(stage.pending(), 0);
}

/// Goal: of two cancellers and a handler exactly one gets an arming (X10).
fn cancel_against_cancel_against_fire<C: Checker, L: Family + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let parts = [
        stage.on(CPU0, |stage| _ = stage.fire(CPU0)),
        stage.on(CPU0, |stage| _ = stage.cancel(0)),
        stage.on(CPU1, |stage| _ = stage.cancel(0)),
    ];
    parts.into_iter().for_each(C::join);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.fired + sum.cancelled), (1, 1));
    stage.settle();
}
