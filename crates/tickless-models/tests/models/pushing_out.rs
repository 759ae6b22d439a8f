//! W1, X1, X3, X10: a pending coarse timer is pushed out by a compare-and-swap on its deadline,
//! against everything that takes the lock. (A precise one takes the lock too.)

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, LATEST, NOW, Stage, WRITTEN};
use super::world::World;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Family, Started};
use tickless_core::platform::{Ordering, Word};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::Ns;

models! {
    pushing_out_against_fire,
    pushing_out_against_cancel,
    pushing_out_against_moving_where_it_belongs,
    pushing_out_against_offline,
    pushing_out_against_becoming_deferrable,
    pushing_out_against_pushing_out,
    a_callback_sees_what_was_done_before_its_timer_was_pushed_out,
}

models! {
    shallow
    pushing_out_against_cancel_sync,
}

/// What is due by now, but was armed for before this.
const BEFORE: Ns = Ns::from_ms(999);

/// Goal: a timer that comes due while it is pushed out fires and is rearmed, or does not fire.
fn pushing_out_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    let started = stage.push_out(0, LATER);
    C::join(handler);
    let fired = u64::from(started == Started::Idle);
    assert_eq!((stage.pending(), stage.fired()), (1, fired), "{started:?}");
    stage.settle();
    stage.drain();
}

/// Goal: a cancel takes the timer off whatever deadline it has; what is armed later stays.
fn pushing_out_against_cancel<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let other = stage.on(CPU1, |stage| _ = stage.cancel(0));
    let started = stage.push_out(0, LATEST);
    C::join(other);
    assert_eq!(stage.pending(), usize::from(started == Started::Idle), "{started:?}");
    stage.settle();
    stage.drain();
}

/// Goal: of two threads that push a timer out the later deadline holds, or the one that came last.
fn pushing_out_against_pushing_out<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let other = stage.on(CPU1, |stage| _ = stage.push_out(0, LATEST));
    stage.push_out(0, LATER);
    C::join(other);
    assert_eq!(stage.expire(CPU0).fired + stage.expire(CPU1).fired, 0, "W1: early");
    assert_eq!(stage.pending(), 1);
    stage.drain();
}

/// Goal: the same while a handler moves the timer to where it belonged before.
fn pushing_out_against_moving_where_it_belongs<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    stage.push_out(0, LATER);
    let handler = stage.on(CPU0, |stage| _ = stage.expire(CPU0));
    assert_eq!(stage.push_out(0, LATEST), Started::Pending);
    C::join(handler);
    assert_eq!((stage.pending(), stage.fired()), (1, 0));
    nothing_fires_before_the_latest(&stage);
}

/// Goal: a base that goes away takes the last deadline that anybody was promised along.
fn pushing_out_against_offline<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, LATER);
    let away = stage.on(CPU1, |stage| _ = stage.bases.offline(CPU0));
    assert_eq!(stage.push_out(0, LATEST), Started::Pending, "pending all the time");
    C::join(away);
    assert_eq!((stage.pending_on(CPU0), stage.pending_on(CPU1)), (0, 1));
    nothing_fires_before_the_latest(&stage);
}

/// The threads have ended, and a timer has been pushed out to `LATEST`.
fn nothing_fires_before_the_latest<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    stage.settle();
    stage.bases.platform().set_time(LATER.after(Ns::from_ms(300)));
    assert_eq!(stage.expire(CPU0).fired + stage.expire(CPU1).fired, 0, "W1: early");
    stage.drain();
}

/// Goal: of a start that makes a timer deferrable and one that does not, one comes last.
fn pushing_out_against_becoming_deferrable<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    // So late that only what the other thread arms can be pushed out. (To loom a store and a
    // compare-and-swap that are not ordered may be the last both.)
    stage.arm(0, LATEST.after(Ns::from_ms(200)));
    let other = stage.on(CPU1, |stage| {
        let started = stage.start_with(0, LATER, Some(CPU0), Wakes::No);
        assert_eq!(started, Ok(Started::Pending));
    });
    assert_eq!(stage.push_out(0, LATEST), Started::Pending);
    C::join(other);
    // What fires is what came last.
    stage.bases.platform().set_time(LATEST.after(Ns::from_ms(400)));
    let expired = stage.expire_with(CPU0, |firing| {
        let is_mixed = L::COARSE && (firing.window.soft == LATER) != (firing.wakes() == Wakes::No);
        assert!(!is_mixed, "{:?}", (firing.window, firing.wakes()));
        CallbackResult::Done
    });
    assert_eq!(expired.fired, 1);
    stage.settle();
}

/// Goal: who puts a timer off has done what it did before for the callback, and nothing more with
/// the timer: the callback frees it.
fn a_callback_sees_what_was_done_before_its_timer_was_pushed_out<
    C: Checker,
    L: Family<World<C>> + 'static,
>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, BEFORE);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            if firing.window.soft == NOW {
                assert_eq!(stage.left.load(Ordering::Relaxed), WRITTEN);
                stage.places[0].free_and_use_again(0);
            }
            CallbackResult::Done
        });
    });
    stage.left.store(WRITTEN, Ordering::Relaxed);
    stage.push_out(0, NOW);
    C::join(handler);
    stage.settle();
}

/// Goal: X3 for a timer that is pending while its callback runs: whoever waits for the callback
/// takes the arming back, and nobody puts it off to after that.
fn pushing_out_against_cancel_sync<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            stage.arm(firing.task, LATER);
            C::yield_now();
            stage.push_out(firing.task, LATEST);
            CallbackResult::Done
        });
    });
    let found = stage.cancel_sync(0);
    let (seen, is_active) = (stage.seen(0), stage.is_active(0));
    C::join(handler);
    if found == Cancel::Running {
        assert!(!is_active && seen == WRITTEN, "X1, X3");
        assert_eq!(stage.pending(), 0);
    }
    stage.settle();
    stage.drain();
}
