//! D8 (offline): a base goes offline while other threads arm, cancel, fire and collect its timers.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, NOW, RESTART, Stage, WRITTEN};
use crate::checker::Thread;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::running::Runner;

models! {
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

fn offline<L: Kind>(stage: &Arc<Stage<L>>) -> Thread {
    stage.on(CPU1, |stage| _ = stage.bases.offline(CPU0).expect("not the last base"))
}

/// Takes CPU 0 offline during `act`. Afterwards so many timers are pending, none on CPU 0.
fn offline_while<L: Kind>(
    stage: &Arc<Stage<L>>,
    pending: RangeInclusive<usize>,
    act: impl FnOnce(&Stage<L>),
) {
    let away = offline(stage);
    act(stage);
    away.join();
    assert_eq!(stage.pending_on(CPU0), 0, "D8: left on a base that is offline");
    assert!(pending.contains(&stage.pending()), "{} are pending", stage.pending());
    stage.settle_and_drain();
}

/// Goal: after a cancel that waits, the timer may be freed, on whichever base it was.
fn offline_against_cancel_sync<L: Kind>() {
    offline_while(&Stage::<L>::new(2).armed([LATER, LATER]), 1..=1, |stage| {
        assert_eq!(stage.cancel_sync(0), Cancel::Pending, "pending all the time");
        stage.places[0].free_and_reuse(0);
    });
}

fn offline_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW, LATER]);
    offline_while(&stage, 1..=2, |stage| _ = stage.expire(CPU0));
    assert_eq!(stage.fired(), 2);
}

/// Goal: a timer that its callback restarts moves when the callback has ended.
fn offline_against_restart<L: Kind>() {
    offline_while(&Stage::<L>::new(1).armed([NOW]), 1..=1, |stage| {
        stage.expire_with(CPU0, |firing| match firing.now {
            NOW => RESTART,
            _ => CallbackResult::Done,
        });
    });
}

fn offline_against_restart_in_a_thread<L: Kind>() {
    offline_while(&Stage::<L>::deferring(1).armed([NOW]), 1..=1, |stage| {
        stage.fire_with(CPU0, Runner::Thread, |_| RESTART);
    });
}

fn offline_against_start<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    assert_eq!(stage.cancel(0), Cancel::Pending);
    offline_while(&stage, 1..=1, |stage| _ = stage.arm(0, LATER));
}

fn offline_against_first_start<L: Kind>() {
    offline_while(&Stage::<L>::new(1), 1..=1, |stage| _ = stage.arm(0, LATER));
}

fn moving_to_a_base_that_goes_offline<L: Kind>() {
    let stage = Stage::<L>::new(1);
    stage.arm_on(CPU1, 0, LATER);
    offline_while(&stage, 1..=1, |stage| _ = stage.arm(0, LATER));
}

/// Goal: timers that were collected and have not fired move and fire on the other base, once.
fn offline_against_collect_and_fire<L: Kind>() {
    let stage = Stage::<L>::deferring(2).armed([NOW, NOW]);
    offline_while(&stage, 0..=2, |stage| {
        if stage.collect(CPU0) == Call::Thread {
            stage.fire(CPU0, Runner::Thread);
        }
    });
    assert_eq!(stage.fired(), 2);
}

fn offline_is_seen_as_active<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    offline_while(&stage, 1..=1, |stage| assert!(stage.is_active(0), "R10"));
}

fn offline_against_offline<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let other = stage.on(CPU1, |stage| _ = stage.bases.offline(CPU1));
    let found = stage.bases.offline(CPU0);
    other.join();
    let is_online = |cpu| stage.bases.view(cpu).expect("a base").is_online;
    assert!(is_online(CPU0) != is_online(CPU1), "exactly one is left");
    assert_eq!(found == Err(OnlineError::Last(CPU0)), is_online(CPU0));
    assert_eq!(stage.pending(), 1);
    stage.settle_and_drain();
}

/// Goal: a timer whose base goes offline fires or is cancelled, and is idle after the cancel.
fn offline_against_fire_against_cancel_sync<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    offline_while(&stage, 0..=0, |_| {
        let handler = stage.handler_with(RESTART);
        let found = stage.cancel_sync(0);
        let fired = stage.seen(0) == WRITTEN;
        assert!(found != Cancel::Running || fired, "X1: what the callback wrote");
        stage.is_idle_and_frees();
        handler.join();
    });
}

fn offline_and_online_against_start<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([LATER]);
    let away = stage.on(CPU1, |stage| {
        stage.bases.offline(CPU0).expect("not the last base");
        stage.bases.online(CPU0).expect("a base");
    });
    let other = stage.on(CPU0, |stage| _ = stage.arm(1, LATER));
    stage.arm(0, LATER);
    [away, other].into_iter().for_each(Thread::join);
    assert_eq!(stage.pending(), 2);
    stage.settle_and_drain();
}

fn offline_does_not_make_a_timer_overlap_itself<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
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
    assert_eq!(stage.pending_on(CPU0), 0, "D8: left on a base that is offline");
    stage.settle_and_drain();
    assert_eq!(stage.fired(), 2);
}
