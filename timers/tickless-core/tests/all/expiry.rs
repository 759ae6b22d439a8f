//! W1, W4, W5, R7 and R9 on whole bases: when and in which order timers fire, how a handler ends.

use crate::support::history::{Plan, run};
use crate::support::on;
use crate::support::random::{Rng, with_seeds};
use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{Family, exactly};
use std::cell::RefCell;
use std::rc::Rc;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Options, Settings};
use tickless_core::rearm::Policy;
use tickless_core::time::Ns;

fn scene() -> Scene {
    Scene::with_policy(Policy::Lazy)
}

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

/// Goal: a wrong current time moves no other timer (W1), and its own only within the bound.
#[test]
fn a_wrong_current_time_does_not_move_other_timers() {
    let wrong = [1, 3_600_000, 1 << 40].map(ms).map(|ahead| START.after(ahead));
    for (hint, family) in
        wrong.into_iter().chain([Ns::ZERO]).flat_map(|hint| Family::BOTH.map(|f| (hint, f)))
    {
        let scene = scene();
        let afters = [1, 5, 70, 600, 10_000, 40_000, 3_600_000].map(ms);
        let timers = afters.map(|after| {
            let timer = scene.timer(family, after.0 as usize);
            scene.start(&timer, HERE, after);
            timer
        });
        let misled = scene.timer(family, 0);
        let arm = |cpu, at| on(cpu, || misled.start(exactly(at), hint, Options::default()));
        for cpu in [HERE, THERE, HERE] {
            arm(cpu, hint.after(ms(1_000))).unwrap();
            arm(cpu, hint.after(ms(2_000))).unwrap();
            arm(cpu, START.after(ms(20))).unwrap();
        }
        let mut fired = Vec::new();
        for now in (0..4_200_000).step_by(7) {
            scene.go(ms(now));
            scene.handle(HERE, |firing| {
                let (soft, now) = (firing.window.soft, firing.now);
                assert!(now >= soft, "{family:?} {hint:?}: early");
                let bound = Ns(soft.since(START).0 / 7).after(ms(8));
                assert!(now.since(soft) <= bound, "{family:?} {hint:?}: {soft:?} at {now:?}");
                fired.push(firing.task);
                CallbackResult::Done
            });
        }
        assert_eq!(fired.len(), timers.len() + 1, "{family:?} {hint:?}");
    }
}

#[test]
fn a_callback_may_drop_its_siblings() {
    for family in Family::BOTH {
        let scene = scene();
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
