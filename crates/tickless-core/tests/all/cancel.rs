//! X2, X5, X9, X10, R9 and R10: cancelling, shutting down, and activity.

use crate::support::history::{Plan, run};
use crate::support::random::{Random, with_seeds};
use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{Watch, on};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{IfPending, Options, StartError, Started};
use tickless_core::rearm::Policy;
use tickless_core::time::Window;

fn lazy() -> Scene {
    Scene::with_policy(Policy::Lazy)
}

/// Goal: each arming ends once, fired or cancelled, and every result is the twin's (X2, X5, X10,
/// R9, R10). Method: cancel-heavy histories with other operations at every lock.
#[test]
fn histories_account_for_every_arming() {
    with_seeds(if cfg!(miri) { 4 } else { 1_500 }, |seed| {
        let plan = Plan::random(&mut Random::new(seed));
        run(Plan { starts: 5, timers: 2 + plan.timers / 3, ..plan }, seed);
    });
}

/// Goal: a history depends on its seed only, so that a failure can be replayed.
#[test]
fn a_history_can_be_replayed() {
    with_seeds(3, |seed| {
        let plan = Plan::random(&mut Random::new(seed));
        assert_eq!(run(plan, seed), run(plan, seed));
    });
}

/// Goal: a callback's restart does not override a concurrent arming (R9), and takes effect if that
/// was cancelled.
#[test]
fn a_restart_gives_way_to_a_start() {
    for (family, cancelled) in Family::both_with_bool() {
        let scene = lazy();
        let timer = scene.timer(family, 0);
        scene.start(&timer, HERE, ms(10));
        scene.go(ms(10));
        scene.handle(HERE, |_| {
            scene.start(&timer, THERE, ms(50));
            if cancelled {
                assert_eq!(on(THERE, || timer.cancel()), Cancel::Running);
            }
            CallbackResult::Restart(exactly(START.after(ms(20))))
        });
        let expected = if cancelled { ms(20) } else { ms(50) };
        assert_eq!(scene.armed(HERE), Some(expected), "{family:?}");
        let view = scene.bases.view(HERE).expect("a base");
        assert_eq!(view.coarse + view.precise, 1, "it is pending once");
    }
}

/// Goal: after a shut-down every arming is refused, including the callback's restart (X5).
/// Method: shut down when fresh, idle, pending, running, running and pending.
#[test]
fn nothing_arms_a_timer_that_was_shut_down() {
    for family in Family::BOTH {
        let refused = |scene: &Scene, timer: &AnyTimer| {
            for pending in [IfPending::Rearm, IfPending::Reduce, IfPending::Leave] {
                for pinned in [None, Some(HERE), Some(THERE)] {
                    let options = Options { pending, pinned, ..Options::default() };
                    let (at, now) = (exactly(START.after(ms(99))), scene.platform().time());
                    assert_eq!(on(THERE, || timer.start(at, now, options)), Err(StartError::Shut));
                }
            }
            assert_eq!((timer.cancel(), timer.shutdown()), (Cancel::Idle, Cancel::Idle));
            assert!(!timer.is_active());
        };
        let scene = lazy();
        let fresh = scene.timer(family, 0);
        assert_eq!(fresh.shutdown(), Cancel::Idle);
        refused(&scene, &fresh);
        let pending = scene.timer(family, 1);
        scene.start(&pending, HERE, ms(10));
        assert_eq!(on(THERE, || pending.shutdown()), Cancel::Pending);
        refused(&scene, &pending);
        let running = scene.timer(family, 2);
        scene.start(&running, HERE, ms(10));
        scene.go(ms(10));
        scene.handle(HERE, |_| {
            scene.start(&running, HERE, ms(10));
            assert_eq!(running.shutdown(), Cancel::Running);
            assert!(running.is_active() && !running.is_pending());
            CallbackResult::Restart(exactly(START))
        });
        refused(&scene, &running);
        assert_eq!(scene.armed(HERE), None);
    }
}

/// Goal: `Reduce` only makes a timer earlier, by the expiry that its family is ordered by; `Leave`
/// changes nothing.
#[test]
fn reduce_and_leave_never_make_a_timer_later() {
    for family in Family::BOTH {
        let scene = lazy();
        let timer = scene.timer(family, 0);
        let start = |pending, after| {
            let options = Options { pending, ..Options::default() };
            scene.start_with(&timer, HERE, ms(after), options)
        };
        assert_eq!(start(IfPending::Reduce, 30), Started::Idle);
        assert_eq!(start(IfPending::Reduce, 30), Started::Kept);
        assert_eq!(start(IfPending::Reduce, 31), Started::Kept);
        assert_eq!(start(IfPending::Leave, 1), Started::Kept);
        assert_eq!(start(IfPending::Reduce, 29), Started::Pending);
        assert_eq!(scene.armed(HERE), Some(ms(29)), "{family:?}");
    }
    let scene = lazy();
    let timer = scene.timer(Family::Coarse, 0);
    let reduce = Options { pending: IfPending::Reduce, ..Options::default() };
    scene.start(&timer, HERE, ms(30));
    let early = Window::new(START.after(ms(20)), START.after(ms(60)));
    assert_eq!(
        timer.start(early, START, reduce),
        Ok(Started::Pending),
        "coarse timers are ordered by soft"
    );
}

/// Goal: a timer that moves to another base is active all the time (R10), also when it is started
/// for the first time. Method: check after every write of a word.
#[test]
fn a_moving_timer_is_active() {
    for (family, first) in Family::both_with_bool() {
        let scene = lazy();
        let timer = Arc::new(scene.timer(family, 0));
        if !first {
            scene.start(&timer, THERE, ms(10));
        }
        let (seen, watched) = (Rc::new(RefCell::new(Vec::new())), Arc::clone(&timer));
        let check = Rc::clone(&seen);
        let watch = Watch::with(Rc::new(move |_| check.borrow_mut().push(watched.is_active())));
        scene.start(&timer, HERE, ms(9));
        drop(watch);
        let seen = seen.borrow();
        assert!(seen.iter().skip_while(|&&active| !active).all(|&active| active), "{seen:?}");
        assert!(first || seen.iter().all(|&active| active), "{seen:?}");
        assert!(seen.len() >= 3, "migrating, lock, pending");
    }
}
