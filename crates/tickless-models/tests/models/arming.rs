//! X2, X5, R1, R9: starts meet starts, cancels, shut-downs and handlers.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage};
use super::world::World;
use tickless_core::bases::Family;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::time::Window;

models! {
    first_starts_race,
    shutdown_against_first_start,
    shutdown_against_start,
    moving_against_cancel,
    moving_against_fire,
    moving_against_moving,
    a_timer_never_overlaps_itself,
    a_restart_gives_way_to_a_start,
    one_handler_at_a_time,
    arming_a_busy_handlers_base,
}

/// Goal: of two first starts one gives the timer its base, the other finds it there.
fn first_starts_race<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    let other = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    stage.arm(0, LATER);
    assert!(stage.is_active(0), "R10");
    C::join(other);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.rearmed), (1, 1));
    stage.settle();
    stage.drain();
}

/// Goal: a shut-down comes before a first start, which is refused, or after it and takes it back.
fn shutdown_against_first_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    let starter = stage.on(CPU1, |stage| _ = stage.start(0, LATER));
    let found = stage.shutdown_sync(0);
    assert!(!stage.is_active(0), "X5: armed after its shut-down");
    assert!(stage.start(0, LATER).is_err(), "X5: armed after its shut-down");
    C::join(starter);
    assert_eq!(stage.counts().cancelled, u64::from(found == Cancel::Pending));
    assert_eq!(stage.pending(), 0);
    stage.settle();
}

/// Goal: the same for a timer that has a base, and a start that takes it to another.
fn shutdown_against_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    assert_eq!(stage.cancel(0), Cancel::Pending);
    let starter = stage.on(CPU1, |stage| _ = stage.start(0, LATER));
    stage.shutdown_sync(0);
    assert!(!stage.is_active(0), "X5: armed after its shut-down");
    assert!(stage.start(0, LATER).is_err(), "X5: armed after its shut-down");
    C::join(starter);
    assert_eq!(stage.pending(), 0);
    stage.settle();
}

/// Goal: a cancel finds a timer on the base that it is on, whichever that is just now (X2).
fn moving_against_cancel<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let mover = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    C::join(mover);
    stage.settle();
    stage.drain();
}

/// Goal: a timer that is moved while its base's handler looks for it fires once or is moved, and
/// is pending afterwards.
fn moving_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let mover = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    C::join(handler);
    C::join(mover);
    assert_eq!(stage.pending(), 1);
    stage.settle();
    stage.drain();
}

/// Goal: two CPUs that take a timer from each other, and a cancel, lose nothing.
fn moving_against_moving<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let mover = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    stage.arm(0, LATER);
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    C::join(mover);
    stage.settle();
    stage.drain();
}

/// Goal: the story of `last_running`, with our core: a timer that is armed elsewhere while its
/// callback runs does not run there too, and who waits for one callback has waited for all (X2).
fn a_timer_never_overlaps_itself<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let run = |stage: &Stage<C, L>, cpu| {
        stage.expire_with(cpu, |firing| {
            stage.enter(firing.task);
            C::yield_now();
            stage.leave(firing.task);
            CallbackResult::Done
        });
    };
    let first = stage.on(CPU0, move |stage| run(stage, CPU0));
    let second = stage.on(CPU1, move |stage| {
        stage.arm(0, NOW);
        run(stage, CPU1);
        stage.shutdown_sync(0);
        assert!(!stage.is_inside(0), "X1: its callback still runs somewhere");
    });
    C::join(first);
    C::join(second);
    assert_eq!(stage.pending(), 0);
    stage.settle();
}

/// Goal: a callback that asks for a restart while another CPU starts the timer enqueues it once
/// (R9).
fn a_restart_gives_way_to_a_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
    });
    let starter = stage.on(CPU1, |stage| _ = stage.arm(0, LATER));
    C::join(handler);
    C::join(starter);
    assert_eq!(stage.pending(), 1);
    stage.settle();
    stage.drain();
}

/// Goal: two handlers of one base fire what is due once, one callback after the other, and leave
/// the device as it should be.
fn one_handler_at_a_time<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let handle = |stage: &Stage<C, L>| {
        stage.expire_with(CPU0, |_| {
            // For both of them: they share the base.
            stage.enter(0);
            stage.leave(0);
            CallbackResult::Done
        });
    };
    let other = stage.on(CPU1, handle);
    handle(&stage);
    C::join(other);
    assert_eq!(stage.fired(), 2);
    stage.settle();
}

/// Goal: what is armed on a base whose handler is under way is not forgotten by its device (R1).
fn arming_a_busy_handlers_base<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let starter = stage.on(CPU1, |stage| _ = stage.arm_on(CPU0, 1, LATER));
    C::join(handler);
    C::join(starter);
    let view = stage.bases.view(CPU0).expect("a base");
    assert_eq!(stage.bases.platform().device(CPU0), view.earliest.into());
    stage.settle();
    stage.drain();
}
