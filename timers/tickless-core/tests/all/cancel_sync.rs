//! X3, X6, X8, X9, X10 (cancel): cancels that wait for a callback.

use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{TestPlatform, on};
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_core::bases::cancel::{Cancel, Wait};
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{Options, Scan, Settings, Started};

/// Returns scenes in which a timer of either family is due.
fn due_timers() -> impl Iterator<Item = (Scene, AnyTimer, Family)> {
    [Scan::RunningBase, Scan::AllBases].into_iter().flat_map(|scan| {
        Family::BOTH.map(|family| {
            let scene = Scene::new(Settings { scan, ..Settings::default() }, 2);
            let timer = scene.timer(family, 0);
            scene.start(&timer, HERE, ms(1));
            scene.go(ms(2));
            (scene, timer, family)
        })
    })
}

/// Goal: `cancel` cancels what `try_cancel` leaves: an arming while the callback runs.
#[test]
fn try_cancel_changes_nothing_while_the_callback_runs() {
    for (scene, timer, family) in due_timers() {
        scene.handle(HERE, |_| {
            assert_eq!(timer.try_cancel(), Cancel::Running);
            scene.start(&timer, HERE, ms(9));
            assert_eq!(timer.try_cancel(), Cancel::Running);
            assert!(timer.is_pending(), "{family:?}: try_cancel has cancelled it");
            CallbackResult::Done
        });
        assert_eq!(timer.cancel(), Cancel::Pending);
    }
}

/// Runs a handler on CPU 0 while another thread cancels: that waits until the callback has begun,
/// and the callback continues when it has parked. Returns the cancel's result.
fn while_cancelling<R: Send>(
    scene: &Scene,
    cancel: impl FnOnce() -> R + Send,
    mut callback: impl FnMut(&Firing<TestPlatform>) -> CallbackResult,
) -> R {
    let begun = AtomicBool::new(false);
    std::thread::scope(|s| {
        let canceller = s.spawn(|| {
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            on(THERE, cancel)
        });
        scene.handle(HERE, |firing| {
            begun.store(true, Ordering::Relaxed);
            while scene.platform().parked() == 0 {
                std::thread::yield_now();
            }
            callback(firing)
        });
        canceller.join().unwrap()
    })
}

/// Goal: one `cancel_sync` ends the rearming of a callback that arms its own timer (X3).
#[test]
fn a_callback_that_arms_itself_is_cancelled() {
    for (by_start, (scene, timer, family)) in
        [false, true].into_iter().flat_map(|by_start| due_timers().map(move |due| (by_start, due)))
    {
        let mut times = 0;
        let found = while_cancelling(
            &scene,
            || timer.cancel_sync(),
            |firing| {
                times += 1;
                let again = exactly(firing.now);
                if by_start {
                    let started = on(HERE, || timer.start(again, firing.now, Options::default()));
                    assert_eq!(started, Ok(Started::Cancelled));
                    return CallbackResult::Done;
                }
                CallbackResult::Restart(again)
            },
        );
        assert_eq!((found, times), (Cancel::Running, 1), "{family:?}");
        let counts = scene.bases.view(HERE).unwrap().counts;
        assert_eq!((counts.armed, counts.fired, counts.cancelled), (2, 1, 1));
        assert!(!timer.is_active());
        assert_eq!(
            scene.start(&timer, HERE, ms(3)),
            Started::Idle,
            "later armings are not refused"
        );
        scene.go(ms(4));
        assert_eq!(scene.fire(HERE), [0]);
    }
}

/// Goal: before a cancel waits, the caller can refuse (X6).
/// Then the cancel has cancelled the arming that it found and no later one (X10).
#[test]
fn a_refused_cancel_loses_no_arming() {
    enum By {
        CallbackResult,
        Start,
        StartOnAnotherCpu,
    }
    for by in [By::CallbackResult, By::Start, By::StartOnAnotherCpu] {
        for (scene, timer, family) in due_timers() {
            scene.handle(HERE, |_| {
                scene.start(&timer, HERE, ms(3));
                let mut asked = Vec::new();
                let refused = timer.cancel_sync_unless(|wait| {
                    asked.push(wait);
                    if wait == Wait::Parked { Err(()) } else { Ok(()) }
                });
                assert_eq!((refused, asked), (Err(()), vec![Wait::Spinning, Wait::Parked]));
                assert!(!timer.is_pending());
                match by {
                    By::CallbackResult => {
                        return CallbackResult::Restart(exactly(START.after(ms(4))));
                    }
                    By::Start => assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Idle),
                    By::StartOnAnotherCpu => {
                        assert_eq!(scene.start(&timer, THERE, ms(4)), Started::Idle)
                    }
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

/// Goal: a refused canceller does not affect others that wait (X3).
#[test]
fn a_refused_cancel_leaves_others_waiting() {
    for (scene, timer, family) in due_timers() {
        let found = while_cancelling(
            &scene,
            || timer.cancel_sync(),
            |firing| {
                assert_eq!(timer.cancel_sync_unless(|_| Err(())), Err(()));
                assert_eq!(timer.cancel_sync_unless(|_| Err(())), Err(()));
                assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Cancelled);
                CallbackResult::Restart(exactly(firing.now))
            },
        );
        assert_eq!(found, Cancel::Running, "{family:?}");
        assert!(!timer.is_active());
        assert_eq!(scene.start(&timer, HERE, ms(4)), Started::Idle);
        assert_eq!(timer.cancel_sync(), Cancel::Pending);
    }
}

/// Goal: a single shot that its callback restarts is cancelled, and reported (X8).
#[test]
fn a_broken_promise_is_reported() {
    for (scene, timer, family) in due_timers() {
        let found = while_cancelling(
            &scene,
            || timer.cancel_single_shot(),
            |firing| CallbackResult::Restart(exactly(firing.now.after(ms(1)))),
        );
        assert_eq!(found, None, "{family:?}");
        assert!(!timer.is_active());
    }
}

/// Goal: `cancel_sync` of a timer that does not run reads one base, and the scan reads all (X9).
#[test]
fn cancel_sync_reads_one_base() {
    for scan in [Scan::RunningBase, Scan::AllBases] {
        let scene = Scene::new(Settings { scan, ..Settings::default() }, 64);
        let timer = scene.timer(Family::Coarse, 0);
        scene.start(&timer, HERE, ms(10));
        let loads = || {
            let before = crate::support::loads();
            assert_ne!(timer.cancel_sync(), Cancel::Running);
            crate::support::loads() - before
        };
        let (pending, idle) = (loads(), loads());
        match scan {
            Scan::RunningBase => assert!(pending < 20 && idle < 20, "{pending} and {idle} loads"),
            Scan::AllBases => assert!(pending > 64 && idle > 64, "{pending} and {idle} loads"),
        }
    }
}
