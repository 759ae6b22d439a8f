//! R1 to R6, R11 and R12 on whole bases: what arming, cancelling and firing do to the devices.

use crate::world::history::{Interference, Outcome, Plan, run};
use crate::world::on;
use crate::world::random::{Random, is_replay, with_seeds};
use crate::world::scene::Scene;
use crate::world::timers::{Family, exactly};
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{BaseCounts, Options, Settings, WheelEvents};
use tickless_core::rearm::{DeviceCounts, Limits, Policy};
use tickless_core::time::{CpuId, Ns};

const HERE: CpuId = CpuId(0);
const THERE: CpuId = CpuId(1);

const fn ms(ms: u64) -> Ns {
    Ns::from_ms(ms)
}

/// Goal: every rule about devices, after every operation (R1-R6, R8, R11, R12).
/// Method: histories under every policy, setting and limit, against a naive twin.
#[test]
fn histories_keep_the_devices_right() {
    let total = std::cell::Cell::new(Outcome::default());
    with_seeds(if cfg!(miri) { 4 } else { 1_500 }, |seed| {
        let plan = Plan::random(&mut Random::new(seed));
        total.set(total.get().plus(run(plan, seed)));
    });
    // A canary: histories in which something never happens prove nothing about it.
    let Outcome { counts, device } = total.get();
    let BaseCounts { armed, rearmed, cancelled, fired, migrated, .. } = counts;
    let DeviceCounts { writes, events, spurious, forced, hangs, .. } = device;
    let seen = [armed, rearmed, cancelled, fired, migrated, writes, events, spurious];
    let rare = [forced, hangs];
    if !is_replay() && !cfg!(miri) {
        assert!(seen.iter().all(|&count| count > 5_000), "{counts:?} {device:?}");
        assert!(rare.iter().all(|&count| count > 100), "{device:?}");
    }
}

/// Goal: eager writes most and is woken least, lazy the other way round, restart-aware in
/// between (R12).
/// Method: the same cancel-heavy histories under each policy, summed.
#[test]
fn policies_trade_writes_for_wakeups() {
    let mut costs = Vec::new();
    for policy in [Policy::Eager, Policy::RestartAware, Policy::Lazy] {
        let total = std::cell::Cell::new(Outcome::default());
        with_seeds(if cfg!(miri) { 2 } else { 300 }, |seed| {
            let plan = Plan::random(&mut Random::new(seed));
            let limits = Limits::NONE;
            let wheel = WheelEvents::Device;
            let settings = Settings { policy, limits, wheel, ..plan.settings };
            let plan = Plan { settings, interference: Interference::None, ..plan };
            total.set(total.get().plus(run(plan, seed)));
        });
        let DeviceCounts { writes, events, spurious, .. } = total.get().device;
        costs.push((writes, events, spurious));
    }
    if !is_replay() && !cfg!(miri) {
        let (eager, lazy) = (costs[0], costs[2]);
        assert!(costs.is_sorted_by(|more, less| more.0 > less.0), "writes: {costs:?}");
        assert!(costs.is_sorted_by(|less, more| less.1 <= more.1), "wakeups: {costs:?}");
        assert!(costs.is_sorted_by(|less, more| less.2 <= more.2), "spurious: {costs:?}");
        assert!(eager.1 < lazy.1 && eager.2 < lazy.2, "{costs:?}");
    }
}

/// Goal: what a cancel and a restart of the local first timer write under each policy (R2, R4,
/// R12). Method: two timers, the first of which is cancelled, moved out, moved back.
#[test]
fn each_policy_has_its_price() {
    // Cancel the first; start it again where the device stood; push it out; pull it in.
    let prices = [
        (Policy::Eager, [1, 1, 1, 1]),
        (Policy::Lazy, [0, 0, 0, 0]),
        (Policy::RestartAware, [1, 1, 1, 1]),
    ];
    for ((policy, price), family) in cross(prices, Family::BOTH) {
        let scene = Scene::with_policy(policy);
        let (first, second) = (scene.timer(family, 1), scene.timer(family, 2));
        assert_eq!(scene.writes(HERE, || scene.start(&second, HERE, ms(20))), 1);
        assert_eq!(scene.writes(HERE, || scene.start(&first, HERE, ms(10))), 1);
        let paid = [
            scene.writes(HERE, || on(HERE, || first.cancel())),
            scene.writes(HERE, || scene.start(&first, HERE, ms(10))),
            scene.writes(HERE, || scene.start(&first, HERE, ms(30))),
            scene.writes(HERE, || scene.start(&first, HERE, ms(10))),
        ];
        assert_eq!(paid, price, "{policy:?} {family:?}");
        assert_eq!(scene.armed(HERE), Some(ms(10)));
    }
}

/// Goal: eager alone writes twice for a restart (R4). Method: the first of two timers is pushed
/// out, but not as far as the second.
#[test]
fn only_eager_writes_twice_for_a_restart() {
    for (policy, family) in cross(Policy::ALL, Family::BOTH) {
        let scene = Scene::with_policy(policy);
        let (first, second) = (scene.timer(family, 1), scene.timer(family, 2));
        scene.start(&first, HERE, ms(10));
        scene.start(&second, HERE, ms(30));
        let writes = scene.writes(HERE, || scene.start(&first, HERE, ms(20)));
        let expected = match policy {
            Policy::Eager => 2,
            Policy::Lazy => 0,
            Policy::RestartAware => 1,
        };
        assert_eq!(writes, expected, "{policy:?} {family:?}");
    }
}

/// Goal: removing another CPU's timer leaves that CPU's device alone (R3), whether it is
/// cancelled, shut down or moved. Removing the local one by moving it does not.
#[test]
fn another_cpus_device_is_left_alone_by_a_removal() {
    for (policy, family) in cross(Policy::ALL, Family::BOTH) {
        let scene = Scene::with_policy(policy);
        let timers = [1, 2, 3, 4].map(|task| scene.timer(family, task));
        for timer in &timers {
            scene.start(timer, THERE, ms(10));
        }
        let writes = scene.writes(THERE, || {
            let _ = on(HERE, || (timers[0].cancel(), timers[1].shutdown()));
            scene.start(&timers[2], HERE, ms(10));
            scene.start(&timers[3], HERE, ms(10));
        });
        assert_eq!(writes, 0, "{policy:?} {family:?}");
        assert_eq!(scene.armed(THERE), Some(ms(10)), "the device comes early, for nothing");
        // Away from the local device: that one is ours to program, once the last one goes.
        let pinned = Options { pinned: Some(THERE), ..Options::default() };
        let writes = scene.writes(HERE, || {
            scene.start_with(&timers[2], HERE, ms(50), pinned);
            scene.start_with(&timers[3], HERE, ms(50), pinned);
        });
        assert_eq!(writes, u64::from(policy != Policy::Lazy), "{policy:?} {family:?}");
    }
}

/// Goal: callbacks program nothing, the handler's end does so once and for all (R5), also if
/// nothing fired and if a callback panics (R6).
#[test]
fn a_handler_programs_once_at_its_end() {
    for (policy, family) in cross(Policy::ALL, Family::BOTH) {
        let scene = Scene::with_policy(policy);
        let (first, second) = (scene.timer(family, 1), scene.timer(family, 2));
        scene.start(&first, HERE, ms(10));
        scene.start(&second, HERE, ms(10));
        scene.go(ms(10));
        let written = scene.world().writes(HERE);
        let writes = scene.writes(HERE, || {
            scene.handle(HERE, |firing| {
                if firing.task == 1 {
                    scene.start(&first, HERE, ms(20));
                    scene.start(&second, HERE, ms(30));
                    let _ = (scene.start(&second, HERE, ms(15)), first.cancel());
                }
                assert_eq!(scene.world().writes(HERE), written);
                CallbackResult::Done
            });
        });
        assert_eq!((writes, scene.armed(HERE)), (1, Some(ms(15))), "{policy:?} {family:?}");
        assert_eq!(scene.writes(HERE, || scene.fire(HERE)), 1, "nothing fired");
        assert_eq!(scene.armed(HERE), Some(ms(15)));
        let _ = second.cancel();
        assert_eq!(scene.writes(HERE, || scene.fire(HERE)), 0, "nothing is left");
    }
}

/// Goal: a panic in a callback is a way out of the handler like any other (R6).
#[test]
fn a_panic_in_a_callback_leaves_the_device_armed() {
    let scene = Scene::with_policy(Policy::Lazy);
    let timers = [1, 2, 3].map(|task| scene.timer(Family::Precise, task));
    for (timer, after) in timers.iter().zip([10, 10, 20]) {
        scene.start(timer, HERE, ms(after));
    }
    scene.go(ms(10));
    let handler = || scene.handle(HERE, |_| std::panic::resume_unwind(Box::new(())));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(handler));
    assert!(ended.is_err());
    assert!(!timers[0].is_active(), "its callback is over");
    assert_eq!(scene.armed(HERE), Some(ms(10)), "the second is due");
    assert_eq!(scene.fire(HERE), [2]);
    assert_eq!(scene.armed(HERE), Some(ms(20)));
}

/// Goal: callers with an old present, who have waited for the lock, arm what has passed with one
/// write, and R1 holds. Method: each caller's present is older than the one's before.
#[test]
fn an_old_present_does_not_move_an_event_that_is_forced() {
    for (policy, family) in cross(Policy::ALL, Family::BOTH) {
        let limits = Limits { min_delta: ms(2), ..Limits::NONE };
        let scene = Scene::new(Settings { policy, limits, ..Settings::default() }, 1);
        let timers = [1, 2, 3].map(|task| scene.timer(family, task));
        scene.go(ms(100));
        let writes = scene.writes(HERE, || {
            for (timer, waited) in timers.iter().zip([10, 20, 30]) {
                let old = scene.world().time().since(ms(waited));
                let arm = || timer.start(exactly(ms(900)), old, Options::default());
                on(HERE, arm).expect("it is not shut down");
            }
        });
        assert_eq!((writes, scene.armed(HERE)), (1, Some(ms(102))), "{policy:?} {family:?}");
    }
}

/// Goal: coarse timers leave the device to precise ones where somebody else ticks.
#[test]
fn a_wheel_that_is_ticked_does_not_arm_the_device() {
    let settings = Settings { wheel: WheelEvents::Tick, ..Settings::default() };
    let scene = Scene::new(settings, 1);
    let (coarse, precise) = (scene.timer(Family::Coarse, 1), scene.timer(Family::Precise, 2));
    scene.start(&coarse, HERE, ms(10));
    assert_eq!(scene.armed(HERE), None);
    scene.start(&precise, HERE, ms(20));
    assert_eq!(scene.armed(HERE), Some(ms(20)));
    scene.go(ms(10));
    assert_eq!(scene.fire(HERE), [1], "the tick finds it");
    assert_eq!(scene.armed(HERE), Some(ms(20)));
}

/// Goal: a timer farther away than the device reaches is woken for on the way, and not lost
/// (R11). Method: a device that reaches 100 ms.
#[test]
fn a_deadline_beyond_the_devices_reach_is_not_lost() {
    for family in Family::BOTH {
        let limits = Limits { max_delta: ms(100), ..Limits::NONE };
        let scene = Scene::new(Settings { limits, ..Settings::default() }, 1);
        let timer = scene.timer(family, 7);
        scene.start(&timer, HERE, ms(256));
        let mut woken = Vec::new();
        while let Some(at) = scene.armed(HERE) {
            scene.go(at);
            woken.push((at, scene.fire(HERE).len()));
        }
        let expected = [(ms(100), 0), (ms(200), 0), (ms(256), 1)];
        let rounded = woken.iter().map(|&(at, fired)| (at.min(ms(256)), fired));
        assert!(rounded.eq(expected), "{family:?}: {woken:?}");
    }
}

/// Goal: a base that its device has not come to yet is not written for what is due (R8).
/// Method: a loop that arms deadlines that have passed, or are about to, never ends up
/// programming more than once.
#[test]
fn arming_the_past_in_a_loop_does_not_push_the_event_ahead() {
    for (policy, family) in cross(Policy::ALL, Family::BOTH) {
        let limits = Limits { min_delta: ms(5), ..Limits::NONE };
        let scene = Scene::new(Settings { policy, limits, ..Settings::default() }, 1);
        let timer = scene.timer(family, 1);
        let writes = scene.writes(HERE, || {
            for now in 0..5 {
                scene.go(ms(now));
                let now = scene.world().time();
                for at in [Ns::ZERO, now, now.after(Ns(1)), now.after(ms(1))] {
                    let _ = on(HERE, || timer.start(exactly(at), now, Options::default()));
                }
            }
        });
        assert_eq!((writes, scene.armed(HERE)), (1, Some(ms(5))), "{policy:?} {family:?}");
        scene.go(ms(5));
        assert_eq!(scene.fire(HERE), [1]);
    }
}

fn cross<A: Copy, B: Copy, const M: usize, const N: usize>(a: [A; M], b: [B; N]) -> Vec<(A, B)> {
    a.into_iter().flat_map(|a| b.into_iter().map(move |b| (a, b))).collect()
}
