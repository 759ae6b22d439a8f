//! X1, X3, X10 (cancel): a canceller races a handler.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, NOW, RESTART, Stage, WRITTEN};
use crate::checker::{Thread, yield_now};
use std::sync::Arc;
use tickless_core::bases::Started;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::time::{Ns, Window};

models! {
    cancel_against_fire,
    shutdown_sync_against_fire,
    watching_against_fire,
    watching_its_parts_against_fire,
    waiting_for_one_of_two,
    cancel_against_restart,
    shutdown_sync_against_restarts,
    cancel_sync_against_fire,
    cancel_sync_against_restarts,
    cancel_sync_against_start_inside,
    single_shot_against_fire,
    single_shot_against_restart,
    try_cancel_against_restart,
}

models! {
    shallow
    cancel_against_cancel_against_fire,
    two_wait_for_one,
    watching_against_cancel_against_fire,
}

/// A cancel that waits, against a handler: the caller sees what the callback wrote and may free the
/// timer (X1); if the arming was cancelled, the callback does not begin (X10).
fn waits_for_the_callback<L: Kind>(cancel: impl FnOnce(&Stage<L>) -> Cancel) {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    let found = cancel(&stage);
    stage.sees_and_frees(found != Cancel::Pending);
    stage.join_and_settle([handler]);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
}

/// Goal: a cancelled arming does not fire; an idle timer may be freed (X1, X10).
fn cancel_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    let canceller = stage.on(CPU1, |stage| match stage.cancel(0) {
        Cancel::Pending => stage.places[0].free_and_reuse(0),
        Cancel::Idle => stage.sees_and_frees(true),
        Cancel::Running => {}
    });
    stage.join_and_settle([handler, canceller]);
    assert_eq!((stage.counts().armed, stage.pending()), (1, 0));
}

fn cancel_sync_against_fire<L: Kind>() {
    waits_for_the_callback::<L>(|stage| stage.cancel_sync(0));
}

fn shutdown_sync_against_fire<L: Kind>() {
    waits_for_the_callback::<L>(|stage| {
        let found = stage.shutdown_sync(0);
        assert!(stage.start(0, NOW).is_err() && !stage.is_active(0), "X5");
        found
    });
}

/// Goal: the single-shot form waits for the callback unless the timer was pending (X8).
fn single_shot_against_fire<L: Kind>() {
    waits_for_the_callback::<L>(|stage| {
        stage.cancel_single_shot(0).expect("it is never armed again")
    });
}

/// Goal: a caller that finds a timer inactive without a lock sees what its callback wrote (X1).
fn watching_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    stage.wait_until_idle(0);
    stage.sees_and_frees(true);
    stage.join_and_settle([handler]);
}

/// Goal: so does a caller that checks whether the timer is pending, and then whether it runs.
fn watching_its_parts_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    while stage.is_pending(0) {
        yield_now();
    }
    while stage.is_running(0) {
        yield_now();
    }
    assert_eq!(stage.seen(0), WRITTEN, "X1: what the callback wrote");
    stage.join_and_settle([handler]);
}

/// Goal: so does a caller that checks after the handler has begun another timer's callback.
fn waiting_for_one_of_two<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW, NOW]);
    let handler = stage.handler();
    stage.wait_until_idle(0);
    stage.sees_and_frees(true);
    stage.join_and_settle([handler]);
    assert_eq!(stage.fired(), 2);
}

fn watching_against_cancel_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let parts = [stage.handler(), stage.on(CPU1, |stage| _ = stage.cancel(0))];
    stage.wait_until_idle(0);
    let seen = stage.seen(0);
    stage.join_and_settle(parts);
    let expected = if stage.fired() == 1 { WRITTEN } else { 0 };
    assert_eq!(seen, expected, "X1: what the callback wrote");
}

/// Goal: a cancel comes before the callback's restart or after it, and no arming is lost (X10).
fn cancel_against_restart<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_with(RESTART);
    let canceller = stage.on(CPU1, |stage| {
        assert_ne!(stage.cancel(0), Cancel::Idle, "pending or running all the time (R10)");
    });
    stage.join_and_drain([handler, canceller]);
}

fn always_restarts<L: Kind>(stage: &Arc<Stage<L>>) -> Thread {
    stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| CallbackResult::Restart(firing.window));
    })
}

/// Goal: `shutdown_sync` returns although the callback restarts its timer each time (X3, X5).
fn shutdown_sync_against_restarts<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = always_restarts(&stage);
    stage.shutdown_sync(0);
    let fired = stage.seen(0) == WRITTEN;
    stage.is_idle_and_frees();
    handler.join();
    assert_eq!(stage.fired() > 0, fired, "X1: what the callback wrote");
    assert_eq!(stage.pending(), 0);
}

/// Goal: `cancel_sync` returns although the callback restarts (X3); later armings may restart.
fn cancel_sync_against_restarts<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = always_restarts(&stage);
    stage.cancel_sync(0);
    assert!(!stage.is_active(0), "X1: still pending or running");
    assert_eq!(stage.arm(0, LATER), Started::Idle);
    stage.join_and_settle([handler]);
    assert_eq!(stage.pending(), 1);
    stage.fire_when_due(CPU0, CallbackResult::Restart(Window::new(Ns::NEVER, Ns::NEVER)));
    assert_eq!(stage.pending(), 1, "a restart is refused though no thread waits");
}

fn cancel_sync_against_start_inside<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_that_rearms();
    assert_ne!(stage.cancel_sync(0), Cancel::Idle, "pending or running all the time (R10)");
    stage.is_idle_and_frees();
    stage.join_and_settle([handler]);
}

/// Goal: exactly one of two cancellers and a handler ends an arming (X10).
fn cancel_against_cancel_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let [one, other] = [CPU0, CPU1].map(|cpu| stage.on(cpu, |stage| _ = stage.cancel(0)));
    stage.join_and_settle([stage.handler(), one, other]);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.fired + sum.cancelled), (1, 1));
}

fn two_wait_for_one<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let wait = |stage: &Stage<L>| {
        let fired = stage.cancel_sync(0) == Cancel::Running;
        assert!(!fired || stage.seen(0) == WRITTEN, "X1: what the callback wrote");
    };
    let parts = [stage.handler(), stage.on(CPU1, wait)];
    wait(&stage);
    stage.join_and_settle(parts);
    assert!(!stage.is_active(0));
}

/// Goal: a single-shot cancel of a timer that is restarted cancels and reports it (X8).
fn single_shot_against_restart<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_with(RESTART);
    let found = stage.cancel_single_shot(0);
    // If it is pending again, it is cancelled as if it had never run.
    let is_reported = matches!(found, None | Some(Cancel::Pending));
    handler.join();
    assert!(is_reported, "X8: {found:?}, fired {}", stage.fired());
    assert!(found.is_some() || stage.pending() == 0);
    stage.settle_and_drain();
}

/// Goal: `try_cancel` cancels an arming, or finds the callback running and changes nothing.
fn try_cancel_against_restart<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_with(RESTART);
    let found = stage.bases.try_cancel(stage.places[0].timer());
    handler.join();
    let expected = (u64::from(found == Cancel::Pending), usize::from(found == Cancel::Running));
    assert_eq!((stage.counts().cancelled, stage.pending()), expected);
    stage.settle_and_drain();
}
