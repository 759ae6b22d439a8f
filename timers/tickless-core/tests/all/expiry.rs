//! W1, W4, W5, R7 and R9 on whole bases: when and in which order timers fire, how a handler ends.

use crate::support::history::{Plan, run};
use crate::support::random::{Rng, with_seeds};
use crate::support::scene::{HERE, START, Scene, ms};
use crate::support::timers::Family;
use std::cell::RefCell;
use std::rc::Rc;
use tickless_core::bases::Settings;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::rearm::Policy;

/// Goal: many timers on few CPUs fire in order, each in its pass, never early (W1, W4).
#[test]
fn histories_fire_crowds_in_order() {
    with_seeds(if cfg!(miri) { 3 } else { 500 }, |seed| {
        let plan = Plan::random(&mut Rng::new(seed));
        run(
            Plan { starts: 8, timers: 10 + 3 * plan.timers, cpus: 1 + plan.cpus % 2, ..plan },
            seed,
        );
    });
}

#[test]
fn a_callback_may_drop_its_siblings() {
    for family in Family::BOTH {
        let scene = Scene::with_policy(Policy::Lazy);
        let timers: Vec<_> = (0..9).map(|task| Some(scene.timer(family, task))).collect();
        for timer in timers.iter().flatten() {
            scene.start(timer, HERE, ms(5));
        }
        scene.go(ms(5));
        let timers = Rc::new(RefCell::new(timers));
        let mut fired = Vec::new();
        scene.handle(HERE, |firing| {
            fired.push(firing.task);
            let next = timers.borrow_mut().get_mut(firing.task + 1).and_then(Option::take);
            drop(next);
            CallbackResult::Done
        });
        assert_eq!(fired, [0, 2, 4, 6, 8], "{family:?}");
    }
}

/// Goal: a timer in a bucket of half a minute, pushed out by a second shortly before its deadline,
/// is late within the bound (W1).
#[test]
fn a_timer_in_a_coarse_bucket_is_moved_for_a_short_push_out() {
    let scene = Scene::new(Settings::default(), 1);
    let timer = scene.timer(Family::Coarse, 7);
    scene.start(&timer, HERE, ms(1_000));
    scene.start(&timer, HERE, ms(3_600_000));
    scene.go(ms(1_100));
    assert!(scene.fire(HERE).is_empty());
    assert_eq!(scene.bases.view(HERE).map(|view| view.relocated), Some(1));
    scene.go(ms(3_599_000));
    scene.start(&timer, HERE, ms(3_601_000));
    let due = scene.bases.next_event(HERE).since(START);
    assert!(due >= ms(3_601_000) && due <= ms(3_601_261), "{due:?}");
    scene.go(due);
    assert_eq!(scene.fire(HERE), [7]);
}
