//! D8 (offline): a base goes offline while other threads arm, cancel, fire and collect its timers.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, NOW, RESTART, Stage, WRITTEN};
use crate::checker::Thread;
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::running::Runner;

models! {
    offline_against_cancel,
    offline_against_cancel_sync,
    offline_against_fire,
    offline_against_restart,
    offline_against_restart_in_a_thread,
    offline_against_start,
    offline_against_first_start,
    offline_against_collect_and_fire,
    offline_against_offline,
    offline_does_not_make_a_timer_overlap_itself,
    moving_to_a_base_that_goes_offline,
    offline_is_seen_as_active,
}

models! {
    shallow
    offline_against_fire_against_cancel_sync,
    offline_and_online_against_start,
}

/// Starts a thread that takes CPU 0 offline.
fn offline<L: Kind>(stage: &Arc<Stage<L>>) -> Thread {
    stage.on(CPU1, |stage| _ = stage.bases.offline(CPU0).expect("not the last base"))
}

/// Checks, after the threads have ended, that no timer is left on CPU 0, or lost.
fn all_have_moved<L: Kind>(stage: &Stage<L>) {
    assert_eq!(stage.pending_on(CPU0), 0, "D8: left on a base that is offline");
    stage.settle_and_drain();
}

/// Goal: a cancel finds a timer that is being moved.
fn offline_against_cancel<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, LATER);
    let away = offline(&stage);
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    away.join();
    assert_eq!(stage.pending(), 0);
    all_have_moved(&stage);
}

/// Goal: after a cancel that waits, the timer may be freed, on whichever base it was.
fn offline_against_cancel_sync<L: Kind>() {
    let stage = Stage::<L>::new(2);
    stage.arm(0, LATER);
    stage.arm(1, LATER);
    let away = offline(&stage);
    assert_eq!(stage.cancel_sync(0), Cancel::Pending, "pending all the time");
    stage.places[0].free_and_reuse(0);
    away.join();
    assert_eq!(stage.pending_on(CPU1), 1);
    all_have_moved(&stage);
}

/// Goal: a due timer fires on its base, or moves and fires on the other, once.
fn offline_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, LATER);
    let away = offline(&stage);
    stage.expire(CPU0);
    away.join();
    all_have_moved(&stage);
    assert_eq!(stage.fired(), 2);
}

/// Goal: a timer that its callback restarts moves when the callback has ended.
fn offline_against_restart<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, NOW);
    let away = offline(&stage);
    stage.expire_with(CPU0, |firing| match firing.now {
        NOW => RESTART,
        _ => CallbackResult::Done,
    });
    away.join();
    assert_eq!(stage.pending(), 1);
    all_have_moved(&stage);
}

/// Goal: so does a timer that an expiry thread fires.
fn offline_against_restart_in_a_thread<L: Kind>() {
    let stage = Stage::<L>::deferring(1);
    stage.arm(0, NOW);
    let away = offline(&stage);
    stage.fire_with(CPU0, Runner::Thread, |_| RESTART);
    away.join();
    assert_eq!(stage.pending(), 1);
    all_have_moved(&stage);
}

/// A start on a base that goes offline: the timer is armed on the other base, or moved there.
fn ends_up_on_cpu1<L: Kind>(stage: &Arc<Stage<L>>) {
    let away = offline(stage);
    stage.arm(0, LATER);
    away.join();
    assert_eq!(stage.pending_on(CPU1), 1);
    all_have_moved(stage);
}

/// Goal: a start of an idle timer races its base.
fn offline_against_start<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, LATER);
    assert_eq!(stage.cancel(0), Cancel::Pending);
    ends_up_on_cpu1(&stage);
}

/// Goal: the first start of a timer races the base.
fn offline_against_first_start<L: Kind>() {
    ends_up_on_cpu1(&Stage::<L>::new(1));
}

/// Goal: a start that moves a timer races its new base.
fn moving_to_a_base_that_goes_offline<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm_on(CPU1, 0, LATER);
    ends_up_on_cpu1(&stage);
}

/// Goal: timers that were collected and have not fired move and fire on the other base, once.
fn offline_against_collect_and_fire<L: Kind>() {
    let stage = Stage::<L>::deferring(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let away = offline(&stage);
    if stage.collect(CPU0) == Call::Thread {
        stage.fire(CPU0, Runner::Thread);
    }
    away.join();
    all_have_moved(&stage);
    assert_eq!(stage.fired(), 2);
}

/// Goal: of two bases that go offline concurrently, one is refused.
fn offline_against_offline<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, LATER);
    let other = stage.on(CPU1, |stage| _ = stage.bases.offline(CPU1));
    let found = stage.bases.offline(CPU0);
    other.join();
    let is_online = |cpu| stage.bases.view(cpu).expect("a base").is_online;
    assert!(is_online(CPU0) != is_online(CPU1), "exactly one is left");
    assert_eq!(found == Err(OnlineError::Last(CPU0)), is_online(CPU0));
    assert_eq!(stage.pending(), 1);
    stage.settle_and_drain();
}

/// Goal: a timer that is being moved is active all the time (R10).
fn offline_is_seen_as_active<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, LATER);
    let away = offline(&stage);
    assert!(stage.is_active(0), "R10");
    away.join();
    all_have_moved(&stage);
}

/// Goal: a timer whose base goes offline fires or is cancelled, and is idle after the cancel.
fn offline_against_fire_against_cancel_sync<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, NOW);
    let away = offline(&stage);
    let handler = stage.handler_with(RESTART);
    let found = stage.cancel_sync(0);
    assert!(found != Cancel::Running || stage.seen(0) == WRITTEN, "X1: what the callback wrote");
    stage.is_idle_and_frees();
    away.join();
    handler.join();
    all_have_moved(&stage);
}

/// Goal: no timer is lost on a base that goes offline and online again.
fn offline_and_online_against_start<L: Kind>() {
    let stage = Stage::<L>::new(2);
    stage.arm(0, LATER);
    let away = stage.on(CPU1, |stage| {
        stage.bases.offline(CPU0).expect("not the last base");
        stage.bases.online(CPU0).expect("a base");
    });
    let other = stage.on(CPU0, |stage| _ = stage.arm(1, LATER));
    stage.arm(0, LATER);
    away.join();
    other.join();
    assert_eq!(stage.pending(), 2);
    stage.settle_and_drain();
}

/// Goal: a timer does not move before its callback has ended, even if it is due again (X2).
fn offline_does_not_make_a_timer_overlap_itself<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm(0, NOW);
    let run = |stage: &Stage<L>, cpu| {
        stage.expire_with(cpu, |firing| {
            stage.enter(firing.task);
            if stage.fired() == 1 {
                stage.arm_on(CPU0, firing.task, NOW);
            }
            stage.leave(firing.task);
            CallbackResult::Done
        });
    };
    let away = stage.on(CPU1, move |stage| {
        stage.bases.offline(CPU0).expect("not the last base");
        run(stage, CPU1);
    });
    run(&stage, CPU0);
    away.join();
    all_have_moved(&stage);
    assert_eq!(stage.fired(), 2);
}
