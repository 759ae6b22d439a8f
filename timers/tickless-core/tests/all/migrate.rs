//! D8 and R13: bases that go offline and online, and lost events of their devices.

use crate::support::scene::{HERE, Scene, THERE, ms};
use crate::support::timers::Family;
use crate::support::{before_each_lock, on};
use std::rc::Rc;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::{CoarseExpiry, Options, Settings};
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{Limits, Policy};
use tickless_core::time::{CpuId, Ns};

fn lazy() -> Scene {
    Scene::with_policy(Policy::Lazy)
}

/// Goal: armings for an offline base, pinned or not, go to another until it is online again.
#[test]
fn armings_for_an_offline_base_go_to_another() {
    for family in Family::BOTH {
        let scene = lazy();
        let timers = [0, 1, 2].map(|task| scene.timer(family, task));
        scene.start(&timers[0], HERE, ms(10));
        timers[0].cancel();
        scene.bases.offline(HERE).unwrap();
        let pinned = Options { pinned: Some(HERE), ..Options::default() };
        scene.start(&timers[0], HERE, ms(10));
        scene.start(&timers[1], HERE, ms(10));
        scene.start_with(&timers[2], THERE, ms(10), pinned);
        assert_eq!(pending(&scene, HERE), 0);
        assert_eq!(pending(&scene, THERE), 3, "{family:?}");
        scene.bases.online(HERE).unwrap();
        assert_eq!(pending(&scene, THERE), 3, "they do not move back");
        scene.start_with(&timers[2], THERE, ms(20), pinned);
        assert_eq!(pending(&scene, HERE), 1);
        scene.go(ms(30));
        assert_eq!((scene.fire(HERE), scene.fire(THERE)), (vec![2], vec![0, 1]));
    }
}

fn pending(scene: &Scene, cpu: CpuId) -> usize {
    let view = scene.bases.view(cpu).unwrap();
    view.coarse + view.precise
}

/// Goal: going online during an evacuation programs the device for the remaining timers (R1).
#[test]
fn going_online_programs_the_device_for_remaining_timers() {
    for family in Family::BOTH {
        let scene = Rc::new(lazy());
        let timers = [0, 1].map(|task| scene.timer(family, task));
        timers.iter().for_each(|timer| _ = scene.start(timer, HERE, ms(10)));
        let stage = Rc::clone(&scene);
        // After `offline` itself, the search for coarse timers, and the move of the first timer.
        let after_one = if family == Family::Coarse { 3 } else { 4 };
        let come_back = move |lock| {
            if lock == after_one {
                stage.platform().deliver(HERE);
                on(THERE, || stage.bases.online(HERE)).unwrap();
            }
        };
        before_each_lock(come_back, || {
            assert_eq!(on(THERE, || scene.bases.offline(HERE)), Ok(1), "{family:?}");
        });
        assert_eq!((pending(&scene, HERE), pending(&scene, THERE)), (1, 1));
        assert_eq!(scene.armed(HERE), Some(ms(10)));
    }
}

#[test]
fn a_lost_event_is_found() {
    for policy in Policy::ALL {
        let scene = Scene::with_policy(policy);
        let timer = scene.timer(Family::Precise, 0);
        let finds_lost_event = |at| {
            scene.go(at);
            on(THERE, || scene.bases.recover_lost_event(HERE, ms(2)))
        };
        let lost = || scene.bases.view(HERE).unwrap().device.lost;
        assert!(!finds_lost_event(ms(1)), "nothing is armed");
        scene.start(&timer, HERE, ms(10));
        scene.platform().deliver(HERE);
        assert!(!finds_lost_event(ms(12)), "it may still come");
        assert_eq!(lost(), 0);
        assert!(finds_lost_event(ms(13)));
        assert_eq!(lost(), 1);
        assert_eq!(scene.fire(HERE), [0]);
        assert!(!finds_lost_event(ms(30)), "it has come");
        scene.bases.offline(HERE).unwrap();
        assert!(!finds_lost_event(ms(60)) && !scene.bases.recover_lost_event(CpuId(2), ms(1)));
        assert_eq!(lost(), 1, "{policy:?}");
    }
}

/// Goal: after a lost event the next check fires everything and counts one late event (R13).
#[test]
fn a_lost_event_makes_timers_late_until_the_next_check() {
    let scene = Scene::new(Settings::default(), 1);
    let (first, second, third) = (
        scene.timer(Family::Precise, 1),
        scene.timer(Family::Precise, 2),
        scene.timer(Family::Coarse, 3),
    );
    scene.start(&first, HERE, ms(1));
    scene.go(ms(2)); // and nothing came
    assert_eq!(scene.writes(HERE, || scene.start(&second, HERE, ms(3))), 0);
    assert_eq!(scene.writes(HERE, || scene.start(&third, HERE, ms(4))), 0);
    scene.go(ms(10));
    assert_eq!(scene.fire(HERE), [1, 2, 3]);
    let device = scene.bases.view(HERE).unwrap().device;
    assert_eq!((device.late, device.events, device.writes), (1, 1, 1));
    // Within the tolerance it does not count as late.
    let limits = Limits { tolerance: ms(9), ..Limits::NONE };
    let scene = Scene::new(Settings { limits, ..Settings::default() }, 1);
    let timer = scene.timer(Family::Precise, 1);
    for (at, late) in [(10, 0), (30, 1)] {
        scene.start(&timer, HERE, ms(if late == 0 { 1 } else { 20 }));
        scene.go(ms(at));
        assert_eq!(scene.fire(HERE), [1]);
        assert_eq!(scene.bases.view(HERE).unwrap().device.late, late);
    }
}

#[test]
fn the_last_base_stays() {
    let scene = lazy();
    scene.bases.offline(THERE).unwrap();
    assert_eq!(scene.bases.offline(HERE), Err(OnlineError::Last(HERE)));
    assert_eq!(scene.bases.offline(CpuId(2)), Err(OnlineError::NoSuchBase(CpuId(2))));
    assert_eq!(scene.bases.online(CpuId(2)), Err(OnlineError::NoSuchBase(CpuId(2))));
    scene.bases.online(THERE).unwrap();
    scene.bases.online(THERE).unwrap();
    assert_eq!(scene.bases.offline(HERE), Ok(0));
    assert_eq!(scene.bases.offline(THERE), Err(OnlineError::Last(THERE)), "counted once");
}

/// Goal: a base that no timer was armed on takes no memory, and only one with coarse timers has a
/// wheel's memory.
#[test]
fn a_base_is_created_by_the_first_timer_on_it() {
    let by_deadline = Settings {
        push_out: PushOut::Eager,
        coarse: CoarseExpiry::AtDeadline,
        ..Settings::default()
    };
    for settings in [Settings::default(), by_deadline] {
        let scene = Scene::new(settings, 480);
        let uses = |bases, wheels| {
            let numbers = format!("used: {bases}, wheels: {wheels},");
            format!("{:?}", scene.bases).contains(&numbers)
        };
        let timers = Family::BOTH.map(|family| scene.timer(family, 0));
        let idle = scene.bases.view(CpuId(7)).expect("it exists");
        for cpu in (0..480).map(CpuId) {
            scene.bases.check(cpu).unwrap();
            assert!(!scene.bases.recover_lost_event(cpu, ms(1)));
            assert_eq!(scene.bases.exact_next_event(cpu), Ns::NEVER);
        }
        assert!(uses(0, 0), "{:?}", scene.bases);
        let [coarse, precise] = &timers;
        for (wheels, timer) in [precise, coarse].into_iter().enumerate() {
            scene.start(timer, CpuId(7 + wheels as u16), ms(10));
            assert!(uses(wheels + 1, wheels), "{:?}", scene.bases);
        }
        // A base that was created by going offline and back looks like one that was never used.
        scene.bases.offline(CpuId(5)).unwrap();
        assert!(!scene.bases.view(CpuId(5)).unwrap().is_online);
        scene.bases.online(CpuId(5)).unwrap();
        let mut view = scene.bases.view(CpuId(5)).unwrap();
        view.longest_holding = idle.longest_holding;
        assert_eq!(view, idle);
        assert_eq!(scene.bases.view(CpuId(480)), None);
    }
}
