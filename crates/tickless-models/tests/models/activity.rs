//! R10: "active" is never a false no.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage};
use super::world::World;
use tickless_core::bases::Family;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::time::Window;

models! {
    a_moving_timer_is_active,
    a_restarting_timer_is_active,
    a_timer_restarted_before_the_next_is_active,
    a_running_timer_that_is_armed_elsewhere_is_active,
}

/// Goal: who looks while a timer changes its base sees it.
fn a_moving_timer_is_active<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let mover = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    assert!(stage.is_active(0), "R10");
    C::join(mover);
    assert_eq!(stage.counts().migrated, 1);
    stage.settle();
    stage.drain();
}

/// Goal: who looks while a timer fires and is restarted by its callback sees it.
fn a_restarting_timer_is_active<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
    });
    assert!(stage.is_active(0), "R10");
    C::join(handler);
    stage.settle();
    stage.drain();
}

/// Goal: the same when the handler goes on to another timer.
fn a_timer_restarted_before_the_next_is_active<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| match firing.task {
            0 => CallbackResult::Restart(Window::new(LATER, LATER)),
            _ => CallbackResult::Done,
        });
    });
    assert!(stage.is_active(0), "R10");
    C::join(handler);
    stage.settle();
    stage.drain();
}

/// Goal: who has armed a timer, whoever fires it meanwhile, sees it until that arming has ended.
fn a_running_timer_that_is_armed_elsewhere_is_active<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let starter = stage.on(CPU1, |stage| {
        stage.arm(0, LATER);
        assert!(stage.is_active(0), "R10");
    });
    C::join(handler);
    C::join(starter);
    stage.settle();
    stage.drain();
}
