//! W1, W4, W5, R7 and R9 on whole bases: when and in which order timers fire, and how a handler
//! ends.

use crate::support::history::{Plan, run};
use crate::support::random::{Random, with_seeds};
use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{Moment, Watch, on};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::{CallbackResult, Expired};
use tickless_core::bases::{Options, Settings, Started};
use tickless_core::queues::wheel::Wakes;
use tickless_core::rearm::{Limits, Policy};
use tickless_core::time::{Ns, Tick, Window};

fn scene() -> Scene {
    Scene::with_policy(Policy::Lazy)
}

/// Goal: many timers fire in order, each in its pass, never early (W1, W4).
/// Method: histories of many timers with many starts on few CPUs.
#[test]
fn histories_fire_crowds_in_order() {
    with_seeds(if cfg!(miri) { 3 } else { 500 }, |seed| {
        let plan = Plan::random(&mut Random::new(seed));
        run(
            Plan { starts: 8, timers: 10 + 3 * plan.timers, cpus: 1 + plan.cpus % 2, ..plan },
            seed,
        );
    });
}

/// Goal: timers of one instant fire in the order of arming (W4); precise timers first, by hard
/// expiry.
#[test]
fn timers_of_one_instant_fire_as_armed() {
    let scene = scene();
    let timers: Vec<_> =
        (0..40).map(|task| scene.timer(Family::BOTH[usize::from(task % 3 == 0)], task)).collect();
    for timer in &timers {
        scene.start(timer, HERE, ms(50));
    }
    scene.start(&timers[7], HERE, ms(50));
    scene.start(&timers[3], HERE, ms(49));
    scene.start(&timers[9], HERE, ms(50));
    scene.go(ms(50));
    let precise = [3].into_iter().chain((0..40).filter(|n| n % 3 == 0 && ![3, 9].contains(n)));
    let coarse = (0..40).filter(|n| n % 3 != 0);
    let fired = scene.fire(HERE);
    let expected: Vec<_> = precise.chain([9]).chain(coarse).collect();
    // Lazy push-out does not move a timer that is armed again for the same time.
    assert_eq!(fired, expected);
}

/// Goal: a caller that passes a wrong current time does not move other timers (W1), and its own
/// only within the bound. Method: times in the near and far future and in the past, on a base with
/// timers at all distances.
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

/// Goal: a precise timer fires with another event within its window, and causes no event of its own
/// before the window's end.
#[test]
fn slack_saves_wakeups() {
    let scene = scene();
    let timers = [0, 1, 2].map(|task| scene.timer(Family::Precise, task));
    for (timer, (soft, hard)) in timers.iter().zip([(10, 30), (11, 31), (21, 40)]) {
        let window = Window::new(START.after(ms(soft)), START.after(ms(hard)));
        timer.start(window, START, Options::default()).expect("not shut down");
    }
    assert_eq!(scene.armed(HERE), Some(ms(30)));
    scene.go(ms(20));
    assert_eq!(scene.fire(HERE), [0, 1]);
    assert_eq!(scene.armed(HERE), Some(ms(40)));
}

/// Goal: a deferrable timer arms no device, fires with another timer's event, and stays deferrable
/// when its callback restarts it.
#[test]
fn deferrable_timers_stay_deferrable() {
    let scene = scene();
    let [lazy, other] = [0, 1].map(|task| scene.timer(Family::Coarse, task));
    let defer = Options { wakes: Wakes::No, ..Options::default() };
    scene.start_with(&lazy, HERE, ms(10), defer);
    assert_eq!(scene.armed(HERE), None);
    scene.start(&other, HERE, ms(30));
    scene.go(ms(30));
    let mut fired = Vec::new();
    let again = exactly(START.after(ms(40)));
    scene.handle(HERE, |firing| {
        fired.push((firing.task, firing.wakes()));
        CallbackResult::Restart(again)
    });
    assert_eq!(fired, [(0, Wakes::No), (1, Wakes::Yes)]);
    assert_eq!(on(HERE, || other.cancel()), Cancel::Pending);
    scene.fire(HERE);
    assert_eq!(scene.armed(HERE), None, "the deferrable timer causes no event");
    scene.go(ms(50));
    assert_eq!(scene.fire(HERE), [0]);
}

/// Goal: a timer that a callback arms for the past fires in the next pass, after all that were due
/// in this one; passes are limited, the hang is counted and the back-off bounded (R7).
/// Method: a timer that restarts itself for the past, by its callback's result or by a start.
#[test]
fn a_timer_that_restarts_itself_for_the_past_does_not_starve_others() {
    for (family, by_handle) in Family::both_with_bool() {
        let scene = scene();
        let timers: Vec<_> = (0..6).map(|task| scene.timer(Family::BOTH[task % 2], task)).collect();
        let greedy = scene.timer(family, 9);
        scene.start(&greedy, HERE, ms(1));
        for timer in &timers {
            scene.start(timer, HERE, ms(5));
        }
        scene.go(ms(5));
        let mut fired = Vec::new();
        let expired = scene.handle(HERE, |firing| {
            fired.push(firing.task);
            scene.platform().set_time(scene.platform().time().after(ms(1)));
            match (firing.task, by_handle) {
                (9, true) => _ = scene.start(&greedy, THERE, Ns::ZERO),
                (9, false) => return CallbackResult::Restart(exactly(START)),
                _ => {}
            }
            CallbackResult::Done
        });
        let greedy_fired = fired.iter().filter(|&&task| task == 9).count();
        assert_eq!((greedy_fired, fired.len()), (3, 9), "{family:?}: once a pass");
        let took = ms(9);
        assert_eq!(expired, Expired { fired: 9, next: scene.platform().time().after(took) });
        let view = scene.bases.view(HERE).expect("a base");
        assert_eq!(view.device.hangs, 1);
        // During the back-off a cancel of the first timer programs nothing.
        scene.start(&timers[0], HERE, ms(15));
        let armed = scene.armed(HERE);
        assert_eq!(scene.writes(HERE, || on(HERE, || greedy.cancel())), 0);
        assert_eq!(scene.armed(HERE), armed);
        scene.platform().set_time(expired.next);
        assert_eq!(scene.fire(HERE), [0]);
    }
}

/// Goal: a back-off is bounded by 100 ms, however long the handler took (R7).
#[test]
fn a_long_hang_backs_off_for_100_ms() {
    let scene = scene();
    let timer = scene.timer(Family::Precise, 0);
    scene.start(&timer, HERE, ms(1));
    scene.go(ms(1));
    let expired = scene.handle(HERE, |_| {
        scene.platform().set_time(scene.platform().time().after(Ns::from_secs(1)));
        CallbackResult::Restart(exactly(START))
    });
    assert_eq!(expired.next, scene.platform().time().after(ms(100)));
}

/// Goal: equal windows fire in the order of arming (W4), also if they were armed for the past
/// during and after a pass.
#[test]
fn late_timers_keep_their_order() {
    for family in Family::BOTH {
        let limits = Limits { passes: 1, ..Limits::NONE };
        let scene = Scene::new(Settings { limits, ..Settings::default() }, 1);
        let timers: Vec<_> = (0..6).map(|task| scene.timer(family, task)).collect();
        let coarse = scene.timer(Family::Coarse, 6);
        for timer in [&timers[0], &coarse] {
            scene.start(timer, HERE, ms(5));
        }
        scene.go(ms(5));
        scene.handle(HERE, |firing| {
            let armed = if firing.task == 0 { 1..3 } else { 3..4 };
            for timer in &timers[armed] {
                scene.start(timer, HERE, ms(5));
            }
            CallbackResult::Done
        });
        scene.start(&timers[4], HERE, ms(5));
        assert_eq!(timers[2].cancel(), Cancel::Pending);
        scene.start(&timers[5], HERE, ms(5));
        assert_eq!(scene.fire(HERE), [1, 3, 4, 5], "{family:?}");
    }
}

/// Goal: a handler that is called within a handler of the same base does nothing.
#[test]
fn a_handler_within_a_handler_does_nothing() {
    let scene = scene();
    let timers = [0, 1].map(|task| scene.timer(Family::Coarse, task));
    for timer in &timers {
        scene.start(timer, HERE, ms(5));
    }
    scene.go(ms(5));
    let mut fired = Vec::new();
    scene.handle(HERE, |firing| {
        fired.push(firing.task);
        let inner = scene.writes(HERE, || {
            let inner = scene.bases.expire(HERE, |_| panic!("two callbacks at once"));
            assert_eq!(inner.fired, 0);
        });
        assert_eq!(inner, 0);
        assert!(timers[firing.task].is_running());
        CallbackResult::Done
    });
    assert_eq!(fired, [0, 1]);
}

/// Goal: callbacks may free other timers, including due ones of the same pass.
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

/// Goal: timers beyond the wheel's reach fire neither early nor later than a granule (W1, W5).
/// Method: a tick of 1 us, with which the wheel reaches 17 minutes.
#[test]
fn far_deadlines_are_kept() {
    let tick = Tick::new(std::time::Duration::from_micros(1)).expect("the shortest tick");
    let scene = Scene::new(Settings { tick, ..Settings::default() }, 1);
    for minutes in [16, 18, 40, 60 * 24 * 365] {
        let timer = scene.timer(Family::Coarse, 0);
        let begin = scene.platform().time();
        let after = Ns::from_secs(60 * minutes);
        let (soft, wakes) = (begin.after(after), Options::default());
        timer.start(exactly(soft), begin, wakes).expect("not shut down");
        let mut rounds = 0;
        while timer.is_pending() && rounds < 100_000 {
            rounds += 1;
            scene.platform().set_time(scene.platform().armed(HERE));
            scene.fire(HERE);
        }
        let late = scene.platform().time().since(soft);
        assert!(!timer.is_active() && scene.platform().time() >= soft);
        assert!(late.0 <= after.0 / 7, "{minutes} min: {late:?} late");
    }
}

/// Goal: the ends of the range are ordinary times (W5).
#[test]
fn the_ends_of_the_range() {
    let scene = scene();
    for family in Family::BOTH {
        let timer = scene.timer(family, 0);
        for (soft, hard) in [(u64::MAX, u64::MAX), (u64::MAX - 1, u64::MAX), (0, u64::MAX)] {
            let window = Window::new(Ns(soft), Ns(hard));
            timer.start(window, START, Options::default()).expect("not shut down");
            assert_eq!(scene.fire(HERE).len(), usize::from(soft == 0), "{family:?}");
        }
    }
    scene.platform().set_time(Ns(u64::MAX - 1));
    let timers: Vec<AnyTimer> =
        Family::BOTH.into_iter().map(|family| scene.timer(family, 1)).collect();
    for timer in &timers {
        let now = Ns(u64::MAX - 1);
        timer.start(exactly(now), now, Options::default()).expect("not shut down");
    }
    assert!(scene.fire(HERE).contains(&1));
    assert_eq!(scene.bases.check(HERE), Ok(()));
}

/// Goal: a timer that is pushed out twice without a lock is late within the bound (W1). Method: it
/// is pushed out from a second to an hour and moved to a bucket of half a minute; shortly before
/// the hour it is pushed out by a second, and must not fire at that bucket's end.
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

/// Goal: pushing a pending timer out takes no lock and writes no device; the timer fires in time.
#[test]
fn pushing_out_takes_no_lock() {
    let scene = Scene::new(Settings::default(), 2);
    let timer = scene.timer(Family::Coarse, 7);
    scene.start(&timer, HERE, ms(30_000));
    let locks = Rc::new(Cell::new(0));
    let count = Rc::clone(&locks);
    let watch = Watch::with(Rc::new(move |moment| {
        count.set(count.get() + u32::from(moment == Moment::Locking));
    }));
    for (step, cpu) in (1..1_000).zip([HERE, THERE].into_iter().cycle()) {
        scene.go(ms(10 * step));
        assert_eq!(scene.start(&timer, cpu, ms(30_000 + 10 * step)), Started::Pending);
    }
    drop(watch);
    assert_eq!((locks.get(), scene.platform().writes(HERE)), (0, 1));
    scene.go(ms(39_989));
    assert!(scene.fire(HERE).is_empty());
    scene.go(ms(45_000));
    assert_eq!(scene.fire(HERE), [7]);
}
