//! D8: a base goes offline while others arm, cancel, fire and collect its timers.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use super::world::World;
use tickless_core::bases::Family;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::running::Runner;
use tickless_core::time::Window;

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
    moving_to_a_base_that_goes_away,
    offline_is_seen_as_active,
}

models! {
    shallow
    offline_against_fire_against_cancel_sync,
    offline_and_online_against_start,
}

/// Takes the base offline on which all timers are.
fn go_away<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    stage.bases.offline(CPU0).expect("not the last one");
}

/// The threads have ended: nothing has been left behind or lost.
fn nothing_is_left<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    assert_eq!(stage.pending_on(CPU0), 0, "D8: left on a base that is offline");
    stage.settle();
    stage.drain();
}

/// Goal: a cancel finds a timer that is being moved.
fn offline_against_cancel<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let away = stage.on(CPU1, go_away);
    assert_eq!(stage.cancel(0), Cancel::Pending, "pending all the time");
    C::join(away);
    assert_eq!(stage.pending(), 0);
    nothing_is_left(&stage);
}

/// Goal: one that is waited for is free afterwards, wherever it was.
fn offline_against_cancel_sync<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, LATER);
    stage.arm(1, LATER);
    let away = stage.on(CPU1, go_away);
    assert_eq!(stage.cancel_sync(0), Cancel::Pending, "pending all the time");
    stage.places[0].free_and_use_again(0);
    C::join(away);
    assert_eq!(stage.pending_on(CPU1), 1);
    nothing_is_left(&stage);
}

/// Goal: what is due fires there or moves and fires elsewhere, once.
fn offline_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    stage.arm(1, LATER);
    let away = stage.on(CPU1, go_away);
    stage.expire(CPU0);
    C::join(away);
    nothing_is_left(&stage);
    assert_eq!(stage.fired(), 2);
}

/// Goal: a timer that its callback restarts leaves when the callback is over.
fn offline_against_restart<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let away = stage.on(CPU1, go_away);
    let later = Window::new(LATER, LATER);
    stage.expire_with(CPU0, |firing| match firing.now {
        NOW => CallbackResult::Restart(later),
        _ => CallbackResult::Done,
    });
    C::join(away);
    assert_eq!(stage.pending(), 1);
    nothing_is_left(&stage);
}

/// Goal: the same for one that an expiry thread fires.
fn offline_against_restart_in_a_thread<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(1);
    stage.arm(0, NOW);
    let away = stage.on(CPU1, go_away);
    let later = Window::new(LATER, LATER);
    stage.fire_with(CPU0, Runner::Thread, |_| CallbackResult::Restart(later));
    C::join(away);
    assert_eq!(stage.pending(), 1);
    nothing_is_left(&stage);
}

/// Goal: what is armed on a base that goes away is armed elsewhere or moved.
fn offline_against_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    assert_eq!(stage.cancel(0), Cancel::Pending);
    let away = stage.on(CPU1, go_away);
    stage.arm(0, LATER);
    C::join(away);
    assert_eq!(stage.pending_on(CPU1), 1);
    nothing_is_left(&stage);
}

/// Goal: the same for a timer that has no base yet.
fn offline_against_first_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    let away = stage.on(CPU1, go_away);
    stage.arm(0, LATER);
    C::join(away);
    assert_eq!(stage.pending_on(CPU1), 1);
    nothing_is_left(&stage);
}

/// Goal: what has been collected and not fired moves and fires elsewhere, once.
fn offline_against_collect_and_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let away = stage.on(CPU1, go_away);
    if stage.collect(CPU0) == Call::Thread {
        stage.fire(CPU0, Runner::Thread);
    }
    C::join(away);
    nothing_is_left(&stage);
    assert_eq!(stage.fired(), 2);
}

/// Goal: of two bases that go away at once, one has to stay.
fn offline_against_offline<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let other = stage.on(CPU1, |stage| _ = stage.bases.offline(CPU1));
    let found = stage.bases.offline(CPU0);
    C::join(other);
    let is_online = |cpu| stage.bases.view(cpu).expect("a base").is_online;
    assert!(is_online(CPU0) != is_online(CPU1), "exactly one is left");
    assert_eq!(found == Err(OnlineError::Last(CPU0)), is_online(CPU0));
    assert_eq!(stage.pending(), 1);
    stage.settle();
    stage.drain();
}

/// Goal: a timer that is moved is never seen idle (R10).
fn offline_is_seen_as_active<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let away = stage.on(CPU1, go_away);
    assert!(stage.is_active(0), "R10");
    C::join(away);
    nothing_is_left(&stage);
}

/// Goal: all three at once: fired or cancelled, and over when the cancel is.
fn offline_against_fire_against_cancel_sync<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let away = stage.on(CPU1, go_away);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| CallbackResult::Restart(Window::new(LATER, LATER)));
    });
    let found = stage.cancel_sync(0);
    assert!(found != Cancel::Running || stage.seen(0) == WRITTEN, "X1: what the callback wrote");
    assert!(!stage.is_active(0), "X1: it is still pending or runs");
    stage.places[0].free_and_use_again(0);
    C::join(away);
    C::join(handler);
    nothing_is_left(&stage);
}

/// Goal: a base that comes back at once keeps what is armed there, or has given it away.
fn offline_and_online_against_start<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, LATER);
    let away = stage.on(CPU1, |stage| {
        go_away(stage);
        stage.bases.online(CPU0).expect("there is such a base");
    });
    let other = stage.on(CPU0, |stage| _ = stage.arm(1, LATER));
    stage.arm(0, LATER);
    C::join(away);
    C::join(other);
    assert_eq!(stage.pending(), 2);
    stage.settle();
    stage.drain();
}

/// Goal: a timer whose callback runs stays until that is over, even if it is due again (X2).
fn offline_does_not_make_a_timer_overlap_itself<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let run = |stage: &Stage<C, L>, cpu| {
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
        go_away(stage);
        run(stage, CPU1);
    });
    run(&stage, CPU0);
    C::join(away);
    nothing_is_left(&stage);
    assert_eq!(stage.fired(), 2);
}

/// Goal: a timer that is on its way to a base that goes away ends up on another.
fn moving_to_a_base_that_goes_away<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm_on(CPU1, 0, LATER);
    let away = stage.on(CPU1, go_away);
    stage.arm(0, LATER);
    C::join(away);
    assert_eq!(stage.pending_on(CPU1), 1);
    nothing_is_left(&stage);
}
