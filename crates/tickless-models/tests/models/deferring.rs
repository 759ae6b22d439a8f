//! D1, D2, D4, D6, D9: a tick that collects meets a thread that fires, and both a canceller.

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use super::world::World;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Deferral, Family, Settings};
use tickless_core::time::{Ns, Window};

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

/// The handler's part: collects, and if that calls the thread, the thread fires.
fn handle<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    if stage.collect(CPU0) == Call::Thread {
        stage.fire(CPU0, Runner::Thread);
    }
}

/// Goal: the story of the withdrawn patch, with our core: what a tick collects while the thread
/// still fires is fired, too, or the device comes for it (D6).
fn collect_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(2);
    stage.arm(0, NOW);
    let thread = stage.on(CPU0, |stage| _ = stage.fire(CPU0, Runner::Thread));
    stage.arm_on(CPU0, 1, NOW);
    handle(&stage);
    C::join(thread);
    // Whoever came last has seen to everything, or has had the device armed for it.
    stage.settle();
    stage.drain();
    assert_eq!(stage.fired(), 2);
    // And what expires from now on has the thread called again.
    stage.arm_on(CPU0, 0, NOW);
    assert_eq!(stage.collect(CPU0), Call::Thread);
    assert_eq!(stage.fire(CPU0, Runner::Thread), 1);
}

/// Goal: a collected timer fires or is cancelled (D2, X10), and who waited sees the callback's end
/// (X1).
fn collect_and_fire_against_cancel_sync<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, handle);
    let found = stage.cancel_sync(0);
    let expected = if found == Cancel::Pending { 0 } else { WRITTEN };
    assert_eq!(stage.seen(0), expected, "X1: what the callback wrote");
    stage.places[0].free_and_use_again(0);
    C::join(handler);
    assert_eq!(stage.fired(), u64::from(found != Cancel::Pending));
    stage.settle();
}

/// Goal: the same when the thread is at work already, and for a cancel that does not wait.
fn collect_against_fire_against_cancel<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(1);
    stage.arm(0, NOW);
    let thread = stage.on(CPU0, |stage| _ = stage.fire(CPU0, Runner::Thread));
    let handler = stage.on(CPU0, handle);
    stage.cancel(0);
    C::join(thread);
    C::join(handler);
    let sum = stage.counts();
    assert_eq!((sum.armed, sum.fired + sum.cancelled), (1, 1));
    stage.settle();
}

/// Goal: a tick may miss what is armed at that moment, the next one does not (D4).
fn a_tick_against_an_arming<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(1);
    let starter = stage.on(CPU1, |stage| _ = stage.arm_on(CPU0, 0, NOW));
    let call = stage.bases.tick(CPU0);
    C::join(starter);
    if call == Call::Nobody {
        assert_eq!(stage.bases.tick(CPU0), Call::Thread, "D4: stale and late");
    }
    assert_eq!(stage.fire(CPU0, Runner::Thread), 1);
    stage.settle();
}

/// Goal: what a callback arms anew in the thread is not forgotten by tick and device (R1, D4).
fn a_restart_against_collect<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(1);
    stage.arm(0, NOW);
    let thread = stage.on(CPU0, |stage| {
        stage.fire_with(CPU0, Runner::Thread, |_| {
            CallbackResult::Restart(Window::new(LATER, LATER))
        });
    });
    if stage.collect(CPU0) == Call::Thread {
        stage.fire_with(CPU0, Runner::Thread, |_| {
            CallbackResult::Restart(Window::new(LATER, LATER))
        });
    }
    C::join(thread);
    assert_eq!(stage.pending(), 1);
    stage.settle();
    stage.drain();
}

/// Goal: a second thread that stands in for the first does not run the first one's callback
/// again while that still runs, even if it is due again (X2, D9).
fn relief_does_not_overlap<C: Checker, L: Family<World<C>> + 'static>() {
    let settings =
        Settings { deferral: Deferral::OnExpiry, patience: Ns::ZERO, ..Settings::default() };
    let stage = Stage::<C, L>::with(1, settings);
    stage.arm(0, NOW);
    assert_eq!(stage.collect(CPU0), Call::Thread);
    let run = |stage: &Stage<C, L>, runner| {
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
    C::join(first);
    stage.settle();
    stage.drain();
    assert_eq!(stage.fired(), 2);
}

/// Goal: two calls for one thread fire what is due once, one callback after the other.
fn one_thread_at_a_time<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::deferring(2);
    stage.arm(0, NOW);
    stage.arm(1, NOW);
    let fire = |stage: &Stage<C, L>| {
        stage.fire_with(CPU0, Runner::Thread, |_| {
            // For both of them: they share the thread.
            stage.enter(0);
            stage.leave(0);
            CallbackResult::Done
        });
    };
    let other = stage.on(CPU1, fire);
    fire(&stage);
    C::join(other);
    assert_eq!(stage.fired(), 2);
    stage.settle();
}
