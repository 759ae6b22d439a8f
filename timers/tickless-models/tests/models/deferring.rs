//! D1, D2, D4, D6, D9 (deferred expiry): a collecting tick, a firing thread and a canceller race.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, NOW, RESTART, Stage};
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Deferral, Settings};
use tickless_core::time::Ns;

models! {
    collect_against_fire,
    collect_and_fire_against_cancel_sync,
    a_tick_against_an_arming,
    a_restart_against_collect,
    one_thread_at_a_time,
}

models! {
    shallow
    collect_against_fire_against_cancel,
    relief_does_not_overlap,
}

fn handle<L: Kind>(stage: &Stage<L>) {
    if stage.collect(CPU0) == Call::Thread {
        stage.fire(CPU0, Runner::Thread);
    }
}

/// Goal: the schedule in which the withdrawn patch of 2016 lost a timer: a timer that a tick
/// collects while the thread fires others is fired as well, or the device is armed for it (D6).
fn collect_against_fire<L: Kind>() {
    let stage = Stage::<L>::deferring(2).armed([NOW]);
    let thread = stage.on(CPU0, |stage| _ = stage.fire(CPU0, Runner::Thread));
    stage.arm_on(CPU0, 1, NOW);
    handle(&stage);
    stage.join_and_drain([thread]);
    assert_eq!(stage.fired(), 2);
    // A timer that expires later makes the tick call the thread again.
    stage.arm_on(CPU0, 0, NOW);
    assert_eq!(stage.collect(CPU0), Call::Thread);
    assert_eq!(stage.fire(CPU0, Runner::Thread), 1);
}

/// Goal: a collected timer fires or is cancelled (D2, X10), and `cancel_sync` waits (X1).
fn collect_and_fire_against_cancel_sync<L: Kind>() {
    let stage = Stage::<L>::deferring(1).armed([NOW]);
    let handler = stage.on(CPU0, handle);
    let found = stage.cancel_sync(0);
    stage.sees_and_frees(found != Cancel::Pending);
    stage.join_and_settle([handler]);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
}

/// Goal: a timer that is collected while the thread runs fires, or is cancelled.
fn collect_against_fire_against_cancel<L: Kind>() {
    let stage = Stage::<L>::deferring(1).armed([NOW]);
    let thread = stage.on(CPU0, |stage| _ = stage.fire(CPU0, Runner::Thread));
    let handler = stage.on(CPU0, handle);
    stage.cancel(0);
    stage.join_and_settle([thread, handler]);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.fired + sum.cancelled), (1, 1));
}

/// Goal: a tick may miss a timer that is armed concurrently; the next tick does not (D4).
fn a_tick_against_an_arming<L: Kind>() {
    let stage = Stage::<L>::deferring(1);
    let starter = stage.on(CPU1, |stage| _ = stage.arm_on(CPU0, 0, NOW));
    let call = stage.bases.tick(CPU0);
    starter.join();
    if call == Call::Nobody {
        assert_eq!(stage.bases.tick(CPU0), Call::Thread, "D4: a stale value makes it late");
    }
    assert_eq!(stage.fire(CPU0, Runner::Thread), 1);
    stage.settle();
}

fn a_restart_against_collect<L: Kind>() {
    let stage = Stage::<L>::deferring(1).armed([NOW]);
    let fire = |stage: &Stage<L>| _ = stage.fire_with(CPU0, Runner::Thread, |_| RESTART);
    let thread = stage.on(CPU0, fire);
    if stage.collect(CPU0) == Call::Thread {
        fire(&stage);
    }
    thread.join();
    assert_eq!(stage.pending(), 1);
    stage.settle_and_drain();
}

/// Goal: a thread that takes over does not run a callback that still runs, due or not (X2, D9).
fn relief_does_not_overlap<L: Kind>() {
    let settings =
        Settings { deferral: Deferral::OnExpiry, patience: Ns::ZERO, ..Settings::default() };
    let stage = Stage::<L>::with(1, settings);
    stage.arm(0, NOW);
    assert_eq!(stage.collect(CPU0), Call::Thread);
    let run = |stage: &Stage<L>, runner| {
        stage.fire_with(CPU0, runner, |firing| {
            stage.enter(firing.task);
            if stage.counts().fired == 1 {
                stage.arm_on(CPU0, firing.task, NOW);
            }
            stage.leave(firing.task);
            CallbackResult::Done
        });
    };
    let first = stage.on(CPU0, move |stage| run(stage, Runner::Thread));
    if stage.collect(CPU0) == Call::Rescuer {
        run(&stage, Runner::Rescuer);
    }
    stage.join_and_drain([first]);
    assert_eq!(stage.fired(), 2);
}

fn one_thread_at_a_time<L: Kind>() {
    let stage = Stage::<L>::deferring(2).armed([NOW, NOW]);
    // One mark for both timers, since they share the thread.
    let fire =
        |stage: &Stage<L>| _ = stage.fire_with(CPU0, Runner::Thread, |_| stage.runs_alone(0));
    let other = stage.on(CPU1, fire);
    fire(&stage);
    stage.join_and_settle([other]);
    assert_eq!(stage.fired(), 2);
}
