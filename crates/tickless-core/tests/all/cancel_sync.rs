//! X1, X3, X7, X8, X9: cancels that wait for a callback.

use crate::world::scene::{START, Scene};
use crate::world::timers::{Family, exactly};
use crate::world::{WatchedWord, World, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tickless_core::bases::cancel::{Cancel, NotSingleShot, Occupied, Wait};
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Options, Scan, Settings, Started};
use tickless_core::link::WheelLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{CpuId, Ns};

const HERE: CpuId = CpuId(0);
const THERE: CpuId = CpuId(1);

const fn ms(ms: u64) -> Ns {
    Ns::from_ms(ms)
}

fn scenes() -> impl Iterator<Item = (Scene, Family)> {
    [Scan::RunningBase, Scan::AllBases].into_iter().flat_map(|scan| {
        let settings = Settings { scan, ..Settings::default() };
        Family::BOTH.map(|family| (Scene::new(settings, 2), family))
    })
}

/// Goal: with nothing to wait for, every form says what it found and leaves the timer idle.
#[test]
fn what_does_not_run_is_not_waited_for() {
    for (scene, family) in scenes() {
        let timer = scene.timer(family, 0);
        assert_eq!(timer.cancel_sync(), Cancel::Idle, "never armed");
        assert_eq!(timer.cancel_single_shot(), Ok(Cancel::Idle));
        assert_eq!(timer.try_cancel(), Cancel::Idle);
        for cpu in [HERE, THERE] {
            scene.start(&timer, cpu, ms(10));
            assert_eq!(timer.cancel_sync(), Cancel::Pending);
            scene.start(&timer, cpu, ms(10));
            assert_eq!(timer.cancel_single_shot(), Ok(Cancel::Pending));
            scene.start(&timer, cpu, ms(10));
            assert_eq!(timer.try_cancel(), Cancel::Pending);
            assert_eq!(timer.cancel_sync(), Cancel::Idle, "armed once, cancelled once");
        }
        scene.go(ms(20));
        assert_eq!(scene.fire(HERE).len() + scene.fire(THERE).len(), 0, "X10");
        assert_eq!(timer.shutdown_sync(), Cancel::Idle);
    }
}

/// Goal: `try_cancel` leaves a running timer alone, even one that is armed again; `cancel` does
/// not.
#[test]
fn trying_changes_nothing_while_the_callback_runs() {
    for (scene, family) in scenes() {
        let timer = scene.timer(family, 0);
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(2));
        scene.handle(HERE, |_| {
            assert_eq!(timer.try_cancel(), Cancel::Running);
            scene.start(&timer, HERE, ms(9));
            assert_eq!(timer.try_cancel(), Cancel::Running);
            assert!(timer.is_pending(), "{family:?}: tried, and cancelled after all");
            CallbackResult::Done
        });
        assert_eq!(timer.cancel(), Cancel::Pending);
    }
}

/// Goal: X1, X7: who cancels while the callback runs comes back after it, sees what it wrote,
/// and sleeps meanwhile. Method: the callback ends only once the canceller is asleep.
#[test]
fn a_running_callback_is_waited_for() {
    for (scene, family) in scenes() {
        let timer = scene.timer(family, 0);
        let (begun, written) = (AtomicBool::new(false), AtomicU64::new(0));
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(2));
        std::thread::scope(|s| {
            let canceller = s.spawn(|| {
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                let found = on(THERE, || timer.cancel_sync());
                // Relaxed: what orders it has to come from the cancel.
                (found, written.load(Ordering::Relaxed), timer.is_active())
            });
            scene.handle(HERE, |_| {
                begun.store(true, Ordering::Relaxed);
                while scene.world().parked() == 0 {
                    std::thread::yield_now();
                }
                written.store(7, Ordering::Relaxed);
                CallbackResult::Done
            });
            assert_eq!(canceller.join().unwrap(), (Cancel::Running, 7, false), "{family:?}");
        });
    }
}

/// Goal: X3: a callback that arms itself, by its result or by hand, is cancelled for good by one
/// synchronous cancel, and the accounts agree; afterwards it can be armed again.
#[test]
fn a_callback_that_arms_itself_is_cancelled() {
    for (by_hand, (scene, family)) in
        [false, true].into_iter().flat_map(|by_hand| scenes().map(move |scene| (by_hand, scene)))
    {
        let timer = scene.timer(family, 0);
        let begun = AtomicBool::new(false);
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(2));
        std::thread::scope(|s| {
            let canceller = s.spawn(|| {
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                on(THERE, || timer.cancel_sync())
            });
            let mut times = 0;
            scene.handle(HERE, |firing| {
                times += 1;
                begun.store(true, Ordering::Relaxed);
                while scene.world().parked() == 0 {
                    std::thread::yield_now();
                }
                if by_hand {
                    let at = exactly(firing.now);
                    let started = on(HERE, || timer.start(at, firing.now, Options::default()));
                    assert_eq!(started, Ok(Started::Cancelled));
                    return CallbackResult::Done;
                }
                CallbackResult::Restart(exactly(firing.now))
            });
            assert_eq!((canceller.join().unwrap(), times), (Cancel::Running, 1), "{family:?}");
        });
        let counts = scene.bases.view(HERE).unwrap().counts;
        assert_eq!((counts.armed, counts.fired, counts.cancelled), (2, 1, 1));
        assert!(!timer.is_active());
        assert_eq!(scene.start(&timer, HERE, ms(3)), Started::Idle, "and nothing is left of it");
        scene.go(ms(4));
        assert_eq!(scene.fire(HERE), [0]);
    }
}

/// Goal: a cancel that is refused its wait cancels what it found and nothing that comes later
/// (X10), by whichever way the timer is armed.
#[test]
fn a_refused_cancel_loses_no_arming() {
    enum By {
        CallbackResult,
        Hand,
        Elsewhere,
    }
    for by in [By::CallbackResult, By::Hand, By::Elsewhere] {
        for (scene, family) in scenes() {
            let timer = scene.timer(family, 0);
            scene.start(&timer, HERE, ms(1));
            scene.go(ms(2));
            scene.handle(HERE, |_| {
                scene.start(&timer, HERE, ms(3));
                let refused = timer.cancel_sync_unless(|occupied| match occupied.wait {
                    Wait::Spinning => Ok(()),
                    Wait::Parked => Err("it would wait for itself"),
                });
                assert_eq!(refused, Err("it would wait for itself"));
                assert!(!timer.is_pending());
                match by {
                    By::CallbackResult => {
                        return CallbackResult::Restart(exactly(START.after(ms(4))));
                    }
                    By::Hand => assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Idle),
                    By::Elsewhere => assert_eq!(scene.start(&timer, THERE, ms(4)), Started::Idle),
                }
                CallbackResult::Done
            });
            assert!(timer.is_pending(), "{family:?}: the arming is lost");
            scene.go(ms(5));
            assert_eq!(scene.fire(HERE), [0], "{family:?}");
            let counts = scene.bases.view(HERE).unwrap().counts;
            assert_eq!((counts.armed, counts.fired, counts.cancelled), (3, 2, 1));
        }
    }
}

/// Goal: X3: who gives up waiting takes nothing from those who still wait: for them every arming is
/// cancelled until the callback is over.
#[test]
fn a_refused_cancel_leaves_others_waiting() {
    for (scene, family) in scenes() {
        let timer = scene.timer(family, 0);
        let begun = AtomicBool::new(false);
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(2));
        std::thread::scope(|s| {
            let canceller = s.spawn(|| {
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                on(THERE, || timer.cancel_sync())
            });
            scene.handle(HERE, |firing| {
                begun.store(true, Ordering::Relaxed);
                while scene.world().parked() == 0 {
                    std::thread::yield_now();
                }
                assert_eq!(timer.cancel_sync_unless(|_| Err(())), Err(()));
                assert_eq!(timer.cancel_sync_unless(|_| Err(())), Err(()));
                assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Cancelled);
                CallbackResult::Restart(exactly(firing.now))
            });
            assert_eq!(canceller.join().unwrap(), Cancel::Running, "{family:?}");
        });
        assert!(!timer.is_active());
        assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Idle);
        assert_eq!(timer.cancel_sync(), Cancel::Pending);
    }
}

/// Goal: X8: a single shot that is pending is cancelled without a look at what runs; one that
/// turns out to have been armed again is reported, and cancelled.
#[test]
fn a_broken_promise_is_reported() {
    for (scene, family) in scenes() {
        let timer = scene.timer(family, 0);
        let begun = AtomicBool::new(false);
        scene.start(&timer, HERE, ms(1));
        scene.go(ms(2));
        std::thread::scope(|s| {
            let canceller = s.spawn(|| {
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                timer.cancel_single_shot()
            });
            scene.handle(HERE, |firing| {
                begun.store(true, Ordering::Relaxed);
                while scene.world().parked() == 0 {
                    std::thread::yield_now();
                }
                CallbackResult::Restart(exactly(firing.now.after(ms(1))))
            });
            assert_eq!(canceller.join().unwrap(), Err(NotSingleShot), "{family:?}");
        });
        assert!(!timer.is_active());
    }
}

/// Goal: X6: who would wait is asked before, is told for whom, and can refuse; the timer is
/// cancelled all the same.
#[test]
fn a_wait_can_be_refused() {
    let scene = Scene::new(Settings::default(), 2);
    let timer = OwnedTimer::<World, WheelLink<WatchedWord>>::new(&scene.bases, 0);
    let start = |after| timer.start(exactly(START.after(after)), START, Options::default());
    on(THERE, || start(ms(1))).unwrap();
    scene.go(ms(2));
    let mut asked = Vec::new();
    scene.handle(THERE, |_| {
        on(THERE, || start(ms(50))).unwrap();
        let refused = timer.cancel_sync_unless(|occupied| {
            asked.push(occupied);
            Err(())
        });
        assert_eq!(refused, Err(()));
        assert!(!timer.is_pending());
        CallbackResult::Done
    });
    let occupied = Occupied { cpu: THERE, runner: Runner::Handler, wait: Wait::Spinning };
    assert_eq!(asked, [occupied]);
    // Who gave up waiting, by choice or by force, has left nothing behind.
    assert_eq!(start(ms(60)), Ok(Started::Idle));
    assert_eq!(timer.cancel(), Cancel::Pending);
}

/// Goal: X9: the lock of one base is all that a synchronous cancel of a timer takes that does not
/// run, and an idle one takes none; the scan reads every base.
#[test]
fn one_base_is_looked_at() {
    for (scan, family) in [Scan::RunningBase, Scan::AllBases].map(|scan| (scan, Family::Coarse)) {
        let scene = Scene::new(Settings { scan, ..Settings::default() }, 64);
        let timer = scene.timer(family, 0);
        scene.start(&timer, HERE, ms(10));
        let loads = || {
            let before = crate::world::loads();
            assert_ne!(timer.cancel_sync(), Cancel::Running);
            crate::world::loads() - before
        };
        let (pending, idle) = (loads(), loads());
        match scan {
            Scan::RunningBase => assert!(pending < 20 && idle < 20, "{pending} and {idle} loads"),
            Scan::AllBases => assert!(pending > 64 && idle > 64, "{pending} and {idle} loads"),
        }
    }
}

/// Goal: several cancellers of one callback all come back, and only after it.
#[test]
fn many_may_wait_for_one() {
    let scene = Arc::new(Scene::new(Settings::default(), 2));
    let timer = Arc::new(scene.timer(Family::Precise, 0));
    let over = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(AtomicBool::new(false));
    scene.start(&timer, HERE, ms(1));
    scene.go(ms(2));
    let cancellers = [0, 1, 2].map(|_| {
        let (timer, over, begun) = (Arc::clone(&timer), Arc::clone(&over), Arc::clone(&begun));
        std::thread::spawn(move || {
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let found = timer.cancel_sync();
            assert!(over.load(Ordering::Relaxed), "came back while the callback ran");
            found
        })
    });
    scene.handle(HERE, |_| {
        begun.store(true, Ordering::Relaxed);
        while scene.world().parked() < 3 {
            std::thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        CallbackResult::Done
    });
    for canceller in cancellers {
        assert_eq!(canceller.join().unwrap(), Cancel::Running);
    }
}
