//! X2, X5, R1, R9 (arming): starts race starts, cancels, shut-downs and handlers.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, NOW, RESTART, Stage};
use crate::checker::Thread;
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;

models! {
    first_starts_race,
    shutdown_against_first_start,
    shutdown_against_start,
    moving_against_cancel,
    moving_against_moving,
    a_timer_never_overlaps_itself,
    a_restart_gives_way_to_a_start,
    one_handler_at_a_time,
    arming_a_busy_handlers_base,
}

fn arm_on_cpu1<L: Kind>(stage: &Arc<Stage<L>>) -> Thread {
    stage.on(CPU1, |stage| _ = stage.arm(0, LATER))
}

/// Goal: one of two first starts gives the timer its base, and the other finds it there.
fn first_starts_race<L: Kind>() {
    let stage = Stage::<L>::new(1);
    let other = arm_on_cpu1(&stage);
    stage.arm(0, LATER);
    assert!(stage.is_active(0), "R10");
    other.join();
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.rearmed), (1, 1));
    stage.settle_and_drain();
}

fn shuts_down<L: Kind>(stage: &Arc<Stage<L>>) {
    let cancelled = stage.counts().cancelled;
    let starter = stage.on(CPU1, |stage| _ = stage.start(0, LATER));
    let found = stage.shutdown_sync(0);
    assert!(!stage.is_active(0), "X5: armed after its shut-down");
    assert!(stage.start(0, LATER).is_err(), "X5: armed after its shut-down");
    stage.join_and_settle([starter]);
    assert_eq!(stage.counts().cancelled - cancelled, u64::from(found == Cancel::Pending));
    assert_eq!(stage.pending(), 0);
}

fn shutdown_against_first_start<L: Kind>() {
    shuts_down(&Stage::<L>::new(1));
}

fn shutdown_against_start<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    assert_eq!(stage.cancel(0), Cancel::Pending);
    shuts_down(&stage);
}

fn moving_against_cancel<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let mover = arm_on_cpu1(&stage);
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    stage.join_and_drain([mover]);
}

fn moving_against_moving<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let mover = arm_on_cpu1(&stage);
    stage.arm(0, LATER);
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    stage.join_and_drain([mover]);
}

/// Goal: a timer that its callback restarts while another CPU starts it is enqueued once (R9).
fn a_restart_gives_way_to_a_start<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_with(RESTART);
    let starter = arm_on_cpu1(&stage);
    stage.join_and_settle([handler, starter]);
    assert_eq!(stage.pending(), 1);
    stage.settle_and_drain();
}

/// Goal: the schedule in which the patch of 2004 ended a wait too early: a timer that is armed on
/// another CPU while its callback runs does not run there too, and a thread that has waited for one
/// callback has waited for all (X2).
fn a_timer_never_overlaps_itself<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let run = |stage: &Stage<L>, cpu| _ = stage.expire_with(cpu, |_| stage.runs_alone(0));
    let first = stage.on(CPU0, move |stage| run(stage, CPU0));
    let second = stage.on(CPU1, move |stage| {
        stage.arm(0, NOW);
        run(stage, CPU1);
        stage.shutdown_sync(0);
        assert!(!stage.is_inside(0), "X1: its callback still runs");
    });
    stage.join_and_settle([first, second]);
    assert_eq!(stage.pending(), 0);
}

/// Goal: two handlers of one base fire each due timer once, one callback at a time.
fn one_handler_at_a_time<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW, NOW]);
    // One mark for both timers, since they share the base.
    let handle = |stage: &Stage<L>| _ = stage.expire_with(CPU0, |_| stage.runs_alone(0));
    let other = stage.on(CPU1, handle);
    handle(&stage);
    stage.join_and_settle([other]);
    assert_eq!(stage.fired(), 2);
}

/// Goal: the device is armed for a timer that is armed while its base's handler runs (R1).
fn arming_a_busy_handlers_base<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW]);
    let handler = stage.handler();
    let starter = stage.on(CPU1, |stage| _ = stage.arm_on(CPU0, 1, LATER));
    stage.join_and_settle([handler, starter]);
    let view = stage.bases.view(CPU0).expect("a base");
    assert_eq!(stage.bases.platform().device(CPU0), view.earliest.to_ns());
    stage.settle_and_drain();
}
