//! X1, X3, X10: a canceller meets a handler.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use super::world::World;
use tickless_core::bases::cancel::{Cancel, NotSingleShot};
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Family, Started};
use tickless_core::time::{Ns, Window};

models! {
    cancel_against_fire,
    shutdown_sync_against_fire,
    watching_against_fire,
    watching_its_parts_against_fire,
    waiting_for_one_of_two,
    cancel_against_restart,
    cancel_against_start_inside,
    shutdown_sync_against_restarts,
    cancel_sync_against_fire,
    cancel_sync_against_restarts,
    cancel_sync_against_start_inside,
    single_shot_against_fire,
    single_shot_that_is_none,
    try_cancel_against_restart,
}

models! {
    shallow
    cancel_against_cancel_against_fire,
    two_wait_for_one,
    watching_against_cancel_against_fire,
}

/// Goal: an arming is cancelled or fires, and whoever finds the timer idle sees what its callback
/// wrote and may free it (X1, X10).
fn cancel_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
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
fn shutdown_sync_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let found = stage.shutdown_sync(0);
    let expected = if found == Cancel::Pending { 0 } else { WRITTEN };
    assert_eq!(stage.seen(0), expected, "X1: what the callback wrote");
    assert!(stage.start(0, NOW).is_err() && !stage.is_active(0), "X5");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
    stage.settle();
}

/// Goal: the same for who only looks and takes no lock.
fn watching_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    while stage.is_active(0) {
        C::yield_now();
    }
    assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    stage.settle();
}

/// Goal: the same when the handler has gone on to another timer before the waiter looked.
fn waiting_for_one_of_two<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
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
fn cancel_against_restart<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
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
fn cancel_against_start_inside<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            stage.arm(firing.task, LATER);
            CallbackResult::Done
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
fn shutdown_sync_against_restarts<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| CallbackResult::Restart(firing.window));
    });
    stage.shutdown_sync(0);
    let fired = stage.seen(0) == WRITTEN;
    assert!(!stage.is_active(0), "X5: restarted after its shut-down");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired() > 0, fired, "X1: what the callback wrote");
    assert_eq!(stage.pending(), 0);
}

/// Goal: of two cancellers and a handler exactly one gets an arming (X10).
fn cancel_against_cancel_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let parts = [
        stage.on(CPU0, |stage| _ = stage.expire(CPU0)),
        stage.on(CPU0, |stage| _ = stage.cancel(0)),
        stage.on(CPU1, |stage| _ = stage.cancel(0)),
    ];
    parts.into_iter().for_each(C::join);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.fired + sum.cancelled), (1, 1));
    stage.settle();
}

/// Goal: who has waited for a cancel sees what the callback wrote and may free the timer (X1);
/// nobody sleeps for ever (X7).
fn cancel_sync_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let found = stage.cancel_sync(0);
    let expected = if found == Cancel::Pending { 0 } else { WRITTEN };
    assert_eq!(stage.seen(0), expected, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
    stage.settle();
}

/// Goal: a callback that always restarts its timer keeps nobody waiting (X3), and is not restarted
/// once the cancel is over; the next arming is not refused,
/// nor is what it restarts.
fn cancel_sync_against_restarts<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| CallbackResult::Restart(firing.window));
    });
    stage.cancel_sync(0);
    assert!(!stage.is_active(0), "X1: it is still pending or runs");
    assert_eq!(stage.arm(0, LATER), Started::Idle);
    C::join(handler);
    assert_eq!(stage.pending(), 1);
    stage.settle();
    stage.fire_when_due(CPU0, CallbackResult::Restart(Window::new(Ns::NEVER, Ns::NEVER)));
    assert_eq!(stage.pending(), 1, "a restart is refused though nobody waits");
}

/// Goal: the same for a timer that its callback starts by itself.
fn cancel_sync_against_start_inside<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            stage.arm(firing.task, LATER);
            CallbackResult::Done
        });
    });
    assert_ne!(stage.cancel_sync(0), Cancel::Idle, "it is pending or runs all the time (R10)");
    assert!(!stage.is_active(0), "X1: it is still pending or runs");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    stage.settle();
}

/// Goal: both of two who wait for one callback are woken (X7).
fn two_wait_for_one<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let wait = |stage: &Stage<C, L>| {
        let fired = stage.cancel_sync(0) == Cancel::Running;
        assert!(!fired || stage.seen(0) == WRITTEN, "X1: what the callback wrote");
    };
    let parts = [stage.on(CPU0, |stage| _ = stage.expire(CPU0)), stage.on(CPU1, wait)];
    wait(&stage);
    parts.into_iter().for_each(C::join);
    assert!(!stage.is_active(0));
    stage.settle();
}

/// Goal: the single-shot form has waited, too, if the timer was not pending (X8).
fn single_shot_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let found = stage.bases.cancel_single_shot(stage.places[0].timer());
    let found = found.expect("it is never armed again");
    let expected = if found == Cancel::Pending { 0 } else { WRITTEN };
    assert_eq!(stage.seen(0), expected, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    stage.settle();
}

/// Goal: a single shot that arms itself after all is cancelled, and is said to be none (X8).
fn single_shot_that_is_none<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
    });
    let found = stage.bases.cancel_single_shot(stage.places[0].timer());
    // Pending again, it is taken off as if it had never run.
    let is_said = found == Err(NotSingleShot) || found == Ok(Cancel::Pending);
    C::join(handler);
    assert!(is_said, "X8: {found:?}, fired {}", stage.fired());
    assert!(found.is_ok() || stage.pending() == 0);
    stage.settle();
    stage.drain();
}

/// Goal: a try takes an arming back or finds the callback running, and then changes nothing.
fn try_cancel_against_restart<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
    });
    let found = stage.bases.try_cancel(stage.places[0].timer());
    C::join(handler);
    let cancelled = u64::from(found == Cancel::Pending);
    assert_eq!(
        (stage.counts().cancelled, stage.pending()),
        (cancelled, usize::from(found == Cancel::Running))
    );
    stage.settle();
    stage.drain();
}

/// Goal: the same for who asks first whether the timer is pending and then whether it runs.
fn watching_its_parts_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    while stage.is_pending(0) {
        C::yield_now();
    }
    while stage.is_running(0) {
        C::yield_now();
    }
    assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
    C::join(handler);
    stage.settle();
}

/// Goal: who looks is not misled by what a canceller says of a callback that still runs.
fn watching_against_cancel_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let parts = [
        stage.on(CPU0, |stage| _ = stage.expire(CPU0)),
        stage.on(CPU1, |stage| _ = stage.cancel(0)),
    ];
    while stage.is_active(0) {
        C::yield_now();
    }
    let seen = stage.seen(0);
    parts.into_iter().for_each(C::join);
    let expected = if stage.fired() == 1 { WRITTEN } else { 0 };
    assert_eq!(seen, expected, "X1: what the callback wrote");
    stage.settle();
}
