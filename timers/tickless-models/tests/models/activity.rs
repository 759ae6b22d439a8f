//! R10 (activity): `is_active` returns true for a timer that is active all the time.

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, NOW, RESTART, Stage};
use tickless_core::bases::firing::CallbackResult;

models! {
    a_moving_timer_is_active,
    a_restarting_timer_is_active,
    a_timer_restarted_before_the_next_is_active,
    a_running_timer_armed_on_another_cpu_is_active,
}

fn a_moving_timer_is_active<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let mover = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    assert!(stage.is_active(0), "R10");
    mover.join();
    assert_eq!(stage.counts().migrated, 1);
    stage.settle_and_drain();
}

fn a_restarting_timer_is_active<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler_with(RESTART);
    assert!(stage.is_active(0), "R10");
    stage.join_and_drain([handler]);
}

fn a_timer_restarted_before_the_next_is_active<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW, NOW]);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| match firing.task {
            0 => RESTART,
            _ => CallbackResult::Done,
        });
    });
    assert!(stage.is_active(0), "R10");
    stage.join_and_drain([handler]);
}

/// Goal: for the thread that has armed a timer, until that arming has ended, also while an earlier
/// arming fires.
fn a_running_timer_armed_on_another_cpu_is_active<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    let starter = stage.on(CPU1, |stage| {
        stage.arm(0, LATER);
        assert!(stage.is_active(0), "R10");
    });
    stage.join_and_drain([handler, starter]);
}
