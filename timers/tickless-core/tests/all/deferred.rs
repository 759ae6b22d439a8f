//! D1 to D9 on one base: collecting, calling its expiry thread, and the thread that takes over.

use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{TestPlatform, before_each_lock, on};
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::{Call, DeferredCounts};
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Deferral, FiresIn, Options, Settings, WheelEvents};
use tickless_core::queues::wheel::Wakes;

const IN_THREAD: Options =
    Options { fires_in: FiresIn::Thread, wakes: Wakes::Yes, pinned: None, pending: PENDING };
const PENDING: tickless_core::bases::IfPending = tickless_core::bases::IfPending::Rearm;

fn scene(deferral: Deferral, wheel: WheelEvents) -> Scene {
    Scene::new(Settings { deferral, wheel, patience: ms(50), ..Settings::default() }, 2)
}

/// Runs the handler. Returns the timers that it fired and the thread that it calls.
fn collect(scene: &Scene) -> (Vec<usize>, Call) {
    collect_with(scene, |_| CallbackResult::Done)
}

fn collect_with(
    scene: &Scene,
    mut run: impl FnMut(&Firing<TestPlatform>) -> CallbackResult,
) -> (Vec<usize>, Call) {
    let mut fired = Vec::new();
    scene.platform().deliver(HERE);
    let collected = on(HERE, || {
        scene.bases.collect(HERE, |firing| {
            fired.push(firing.task);
            run(firing)
        })
    });
    assert_eq!(collected.expired.fired, fired.len() as u64);
    (fired, collected.call)
}

fn fire_with(
    scene: &Scene,
    runner: Runner,
    mut run: impl FnMut(&Firing<TestPlatform>) -> CallbackResult,
) -> Vec<usize> {
    let mut fired = Vec::new();
    on(HERE, || {
        scene.bases.fire(HERE, runner, |firing| {
            fired.push(firing.task);
            run(firing)
        })
    });
    fired
}

fn fire(scene: &Scene) -> Vec<usize> {
    fire_with(scene, Runner::Thread, |_| CallbackResult::Done)
}

fn counts(scene: &Scene) -> DeferredCounts {
    scene.bases.view(HERE).unwrap().deferred
}

fn three(scene: &Scene) -> [AnyTimer; 3] {
    let families = [(Family::Coarse, 0), (Family::Precise, 1), (Family::Precise, 2)];
    families.map(|(family, task)| scene.timer(family, task))
}

/// Goal: the handler fires its own timers and calls the thread once, for expired ones (D3).
#[test]
fn the_thread_is_called_when_something_expired() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers = three(&scene);
    scene.start_with(&timers[0], HERE, ms(10), IN_THREAD);
    scene.start_with(&timers[1], HERE, ms(5), Options::default());
    scene.start_with(&timers[2], HERE, ms(10), IN_THREAD);
    assert_eq!(scene.armed(HERE), Some(ms(5)));
    scene.go(ms(5));
    assert_eq!(collect(&scene), (vec![1], Call::Nobody));
    assert_eq!(scene.armed(HERE), Some(ms(10)));
    scene.go(ms(11));
    assert_eq!(collect(&scene), (vec![], Call::Thread));
    assert_eq!(collect(&scene), (vec![], Call::Nobody), "called already");
    assert_eq!(scene.armed(HERE), Some(ms(61)), "to check whether the thread is stuck");
    assert_eq!(fire(&scene), [2, 0]);
    assert_eq!(scene.armed(HERE), Some(ms(61)), "lazy: early, not late");
    scene.go(ms(61));
    assert_eq!(collect(&scene), (vec![], Call::Nobody));
    assert_eq!(scene.armed(HERE), None);
    let counts = counts(&scene);
    assert_eq!((counts.wakes, counts.empty_wakes, counts.fired), (1, 0, 2));
    assert_eq!(counts.longest_batch, 2);
}

/// Goal: a tick calls the thread if a timer has expired, or always with `EveryTick`, and otherwise
/// takes no lock (D1, D3).
#[test]
fn ticks_call_when_they_should() {
    for (deferral, idle) in
        [(Deferral::OnExpiry, Call::Nobody), (Deferral::EveryTick, Call::Thread)]
    {
        let scene = scene(deferral, WheelEvents::Tick);
        let timer = scene.timer(Family::Coarse, 0);
        scene.start(&timer, HERE, ms(10));
        assert_eq!(scene.armed(HERE), None, "ticks need no device");
        for now in 1..10 {
            scene.go(ms(now));
            let locks = before_each_lock(|_| (), || assert_eq!(scene.bases.tick(HERE), idle));
            assert!(locks == 0 || deferral == Deferral::EveryTick, "a needless lock");
            if idle == Call::Thread {
                assert_eq!(scene.bases.tick(HERE), Call::Nobody, "called already");
                assert_eq!(fire(&scene), []);
            }
        }
        scene.go(ms(10));
        assert_eq!(scene.bases.tick(HERE), Call::Thread);
        assert_eq!(fire(&scene), [0]);
        let empty = if idle == Call::Thread { 9 } else { 0 };
        assert_eq!((counts(&scene).wakes, counts(&scene).empty_wakes), (empty + 1, empty));
    }
}

/// Goal: a cancelled timer costs one lock, after which the time that ticks read is exact (D4).
#[test]
fn a_cancelled_timer_costs_a_tick_one_lock() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Tick);
    let timers = [0, 1].map(|task| scene.timer(Family::Coarse, task));
    scene.start(&timers[0], HERE, ms(10));
    scene.start(&timers[1], HERE, ms(40));
    timers[0].cancel();
    scene.go(ms(12));
    let locks = before_each_lock(
        |_| (),
        || (0..3).for_each(|_| assert_eq!(scene.bases.tick(HERE), Call::Nobody)),
    );
    assert_eq!(locks, 1);
    scene.go(ms(41));
    assert_eq!(scene.bases.tick(HERE), Call::Thread);
}

/// Goal: timers that come due while the thread runs are merged, without another call (D6).
#[test]
fn a_second_collection_is_merged_with_the_first() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers: Vec<_> = (0..6).map(|task| scene.timer(Family::Coarse, task)).collect();
    for (place, timer) in timers.iter().enumerate() {
        scene.start(timer, HERE, ms(10 + place as u64));
    }
    scene.go(ms(10));
    assert_eq!(collect(&scene).1, Call::Thread);
    let fired = fire_with(&scene, Runner::Thread, |firing| {
        if firing.task < 5 {
            scene.go(ms(11 + firing.task as u64));
            assert_eq!(collect(&scene).1, Call::Nobody);
        }
        CallbackResult::Done
    });
    assert_eq!(fired, [0, 1, 2, 3, 4, 5]);
    assert_eq!((counts(&scene).wakes, counts(&scene).merged), (1, 5));
}

/// Goal: the device is armed for the thread's timers at the thread's end (R5, R6).
#[test]
fn the_thread_programs_the_device_at_its_end() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers = [0, 1].map(|task| scene.timer(Family::Coarse, task));
    let hard = scene.timer(Family::Precise, 2);
    scene.start(&timers[0], HERE, ms(10));
    scene.go(ms(10));
    assert_eq!(collect(&scene).1, Call::Thread);
    let fired = fire_with(&scene, Runner::Thread, |_| {
        assert_eq!(scene.armed(HERE), Some(ms(60)), "to check whether the thread is stuck");
        let writes = |timer, after| scene.writes(HERE, || _ = scene.start(timer, HERE, after));
        assert_eq!(writes(&timers[1], ms(25)), 0);
        // A timer that fires in the handler needs the device.
        assert_eq!(writes(&hard, ms(20)), 1);
        assert_eq!(hard.cancel(), Cancel::Pending);
        CallbackResult::Restart(exactly(START.after(ms(40))))
    });
    assert_eq!(fired, [0]);
    assert_eq!(scene.armed(HERE), Some(ms(20)), "lazy: early, not late");
    scene.go(ms(20));
    assert_eq!(collect(&scene), (vec![], Call::Nobody));
    assert_eq!(scene.armed(HERE), Some(ms(25)));
}

/// Goal: a second thread fires the timers behind a stuck callback (D9), which never overlaps (X2).
#[test]
fn a_stuck_thread_is_relieved() {
    for family in Family::BOTH {
        let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
        let timers = [0, 1].map(|task| scene.timer(family, task));
        let start = |task: usize, after| scene.start_with(&timers[task], HERE, after, IN_THREAD);
        start(0, ms(10));
        scene.go(ms(10));
        assert_eq!(collect(&scene).1, Call::Thread);
        let mut turns = 0;
        let fired = fire_with(&scene, Runner::Thread, |firing| {
            turns += 1;
            if turns > 1 {
                return CallbackResult::Done;
            }
            assert_eq!(firing.task, 0);
            start(0, ms(20));
            start(1, ms(20));
            scene.go(ms(59));
            assert_eq!(collect(&scene).1, Call::Nobody, "patience has not passed");
            scene.go(ms(60));
            assert_eq!(collect(&scene).1, Call::Rescuer);
            assert_eq!(collect(&scene).1, Call::Nobody, "not at once again");
            let by_relief = fire_with(&scene, Runner::Rescuer, |firing| {
                assert_eq!(timers[firing.task].try_cancel(), Cancel::Running);
                assert_eq!(on(THERE, || timers[0].try_cancel()), Cancel::Running);
                CallbackResult::Done
            });
            assert_eq!(by_relief, [1], "{family:?}");
            assert!(timers[0].is_pending());
            CallbackResult::Done
        });
        assert_eq!(fired, [0, 0]);
        assert_eq!((counts(&scene).reliefs, counts(&scene).fired), (1, 3));
        assert_eq!(
            fire_with(&scene, Runner::Rescuer, |_| CallbackResult::Done),
            [],
            "no thread is stuck"
        );
    }
}

#[test]
fn deferrable_timers_fire_with_the_next_batch() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers = [0, 1].map(|task| scene.timer(Family::Coarse, task));
    scene.start_with(&timers[0], HERE, ms(5), Options { wakes: Wakes::No, ..IN_THREAD });
    scene.start(&timers[1], HERE, ms(20));
    scene.go(ms(6));
    assert_eq!(collect(&scene).1, Call::Nobody);
    scene.go(ms(20));
    assert_eq!(collect(&scene).1, Call::Thread);
    assert_eq!(fire(&scene), [0, 1]);
}

/// Goal: a timer armed for another runner while its callback runs waits for that callback (X2).
#[test]
fn a_change_of_runner_waits_for_the_callback() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timer = scene.timer(Family::Precise, 0);
    scene.start_with(&timer, HERE, ms(10), IN_THREAD);
    scene.go(ms(10));
    assert_eq!(collect(&scene), (vec![], Call::Thread));
    let fired = fire_with(&scene, Runner::Thread, |firing| {
        if firing.now == START.after(ms(10)) {
            scene.start_with(&timer, HERE, ms(10), Options::default());
            assert_eq!(collect(&scene), (vec![], Call::Nobody), "fired while it was running");
            scene.go(ms(11));
        }
        CallbackResult::Done
    });
    assert_eq!(fired, [0, 0]);
    scene.start_with(&timer, HERE, ms(20), Options::default());
    scene.go(ms(20));
    assert_eq!(collect(&scene), (vec![0], Call::Nobody));
}

/// Goal: a handler that takes longer than the patience ends and calls the thread. (It once looped
/// for ever with the lock held.)
#[test]
fn a_handler_may_take_longer_than_patience() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers = three(&scene);
    scene.start_with(&timers[0], HERE, ms(10), IN_THREAD);
    scene.start_with(&timers[1], HERE, ms(10), Options::default());
    scene.go(ms(10));
    let mut rounds = 0;
    let collected = collect_with(&scene, |firing| {
        rounds += 1;
        assert!(rounds < 9, "no end");
        scene.go(ms(rounds * 60));
        match rounds < 4 {
            true => CallbackResult::Restart(exactly(firing.now)),
            false => CallbackResult::Done,
        }
    });
    assert_eq!(collected, (vec![1; 3], Call::Thread), "backs off after 3");
    assert_eq!(fire(&scene), [0]);
}

/// Goal: a handler whose callback panics has called no thread, so the device comes again (R6).
#[test]
fn a_panic_does_not_lose_a_call() {
    let scene = scene(Deferral::OnExpiry, WheelEvents::Device);
    let timers = three(&scene);
    scene.start_with(&timers[0], HERE, ms(10), IN_THREAD);
    scene.start_with(&timers[1], HERE, ms(10), Options::default());
    scene.go(ms(10));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        collect_with(&scene, |firing| {
            assert_ne!(firing.task, 2, "on purpose");
            scene.start_with(&timers[2], HERE, ms(10), Options::default());
            CallbackResult::Done
        })
    }));
    assert!(panicked.is_err());
    scene.bases.check(HERE).unwrap();
    assert_eq!(collect(&scene), (vec![], Call::Thread));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fire_with(&scene, Runner::Thread, |_| panic!("on purpose"));
    }));
    assert!(panicked.is_err());
    scene.start_with(&timers[0], HERE, ms(20), IN_THREAD);
    scene.go(ms(20));
    assert_eq!(collect(&scene), (vec![], Call::Thread), "the thread does not count as running");
    assert_eq!(fire(&scene), [0]);
}
