//! W1, X1, X3, X10 (push-out): a pending coarse timer is pushed out by a compare-and-swap on its
//! deadline, and races operations that take the lock. (A precise timer's takes the lock too.)

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, LATER, LATEST, NOW, Stage, WRITTEN};
use crate::checker::yield_now;
use tickless_core::bases::Started;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
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

/// A deadline shortly before [`NOW`].
const BEFORE: Ns = Ns::from_ms(999);

/// Goal: a due timer that is pushed out fires and is rearmed, or does not fire.
fn pushing_out_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.handler();
    let started = stage.push_out(0, LATER);
    handler.join();
    let fired = u64::from(started == Started::Idle);
    assert_eq!((stage.pending(), stage.fired()), (1, fired), "{started:?}");
    stage.settle_and_drain();
}

/// Goal: a cancel ends the arming with either deadline; an arming after it stays.
fn pushing_out_against_cancel<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let other = stage.on(CPU1, |stage| _ = stage.cancel(0));
    let started = stage.push_out(0, LATEST);
    other.join();
    assert_eq!(stage.pending(), usize::from(started == Started::Idle), "{started:?}");
    stage.settle_and_drain();
}

fn pushing_out_against_pushing_out<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let other = stage.on(CPU1, |stage| _ = stage.push_out(0, LATEST));
    stage.push_out(0, LATER);
    other.join();
    assert_eq!(stage.expire(CPU0).fired + stage.expire(CPU1).fired, 0, "W1: early");
    assert_eq!(stage.pending(), 1);
    stage.settle_and_drain();
}

/// Goal: a push-out holds while a handler moves the timer to the bucket of an earlier push-out.
fn pushing_out_against_moving_where_it_belongs<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    stage.push_out(0, LATER);
    let handler = stage.handler();
    assert_eq!(stage.push_out(0, LATEST), Started::Pending);
    handler.join();
    assert_eq!((stage.pending(), stage.fired()), (1, 0));
    fires_at_the_latest(&stage);
}

fn pushing_out_against_offline<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([LATER]);
    let away = stage.on(CPU1, |stage| _ = stage.bases.offline(CPU0));
    assert_eq!(stage.push_out(0, LATEST), Started::Pending, "pending all the time");
    away.join();
    assert_eq!((stage.pending_on(CPU0), stage.pending_on(CPU1)), (0, 1));
    fires_at_the_latest(&stage);
}

/// After the threads have ended: a timer that was pushed out to `LATEST` does not fire before.
fn fires_at_the_latest<L: Kind>(stage: &Stage<L>) {
    stage.settle();
    stage.bases.platform().set_time(LATER.after(Ns::from_ms(300)));
    assert_eq!(stage.expire(CPU0).fired + stage.expire(CPU1).fired, 0, "W1: early");
    stage.settle_and_drain();
}

/// Goal: the deadline and the kind of the last of two starts hold together.
fn pushing_out_against_becoming_deferrable<L: Kind>() {
    let stage = Stage::<L>::new(1);
    // So late that only the arming of the other thread can be pushed out. (Loom may take both a
    // store and an unordered compare-and-swap for the last write.)
    stage.arm(0, LATEST.after(Ns::from_ms(200)));
    let other = stage.on(CPU1, |stage| {
        let started = stage.start_with(0, LATER, Some(CPU0), Wakes::No);
        assert_eq!(started, Ok(Started::Pending));
    });
    assert_eq!(stage.push_out(0, LATEST), Started::Pending);
    other.join();
    stage.bases.platform().set_time(LATEST.after(Ns::from_ms(400)));
    let expired = stage.expire_with(CPU0, |firing| {
        let is_mixed = L::COARSE && (firing.window.soft == LATER) != (firing.wakes() == Wakes::No);
        assert!(!is_mixed, "{:?}", (firing.window, firing.wakes()));
        CallbackResult::Done
    });
    assert_eq!(expired.fired, 1);
    stage.settle();
}

/// Goal: a callback sees what a thread did before its last push-out, and may free the timer.
fn a_callback_sees_what_was_done_before_its_timer_was_pushed_out<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([BEFORE]);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            if firing.window.soft == NOW {
                assert_eq!(stage.left.load(Ordering::Relaxed), WRITTEN);
                stage.places[0].free_and_reuse(0);
            }
            CallbackResult::Done
        });
    });
    stage.left.store(WRITTEN, Ordering::Relaxed);
    stage.push_out(0, NOW);
    stage.join_and_settle([handler]);
}

/// Goal: `cancel_sync` ends an arming by the callback, and a push-out after it is refused (X3).
fn pushing_out_against_cancel_sync<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |firing| {
            stage.arm(firing.task, LATER);
            yield_now();
            stage.push_out(firing.task, LATEST);
            CallbackResult::Done
        });
    });
    let found = stage.cancel_sync(0);
    let (seen, is_active) = (stage.seen(0), stage.is_active(0));
    handler.join();
    if found == Cancel::Running {
        assert!(!is_active && seen == WRITTEN, "X1, X3");
        assert_eq!(stage.pending(), 0);
    }
    stage.settle_and_drain();
}
