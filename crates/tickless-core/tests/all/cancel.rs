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
use tickless_core::bases::{IfPending, Options, StartError};
use tickless_core::rearm::Policy;

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

/// Goal: after a shut-down every arming is refused, including the callback's restart (X5).
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

/// Goal: a moving timer is active after every write of a word (R10), also at its first start.
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
