//! R1 to R12, X2, X5 and X10 on whole bases: how arming, cancelling and firing program the devices.

use crate::support::history::{Interference, Outcome, Plan, run};
use crate::support::random::{Rng, given, with_seeds};
use crate::support::scene::{HERE, Scene, ms};
use crate::support::timers::Family;
use tickless_core::bases::{BaseCounts, Settings, WheelEvents};
use tickless_core::rearm::{DeviceCounts, Limits, Policy};

/// Goal: every rule about devices holds after every operation (R1-R6, R8, R11, R12), each
/// arming ends once, and every result is the twin's (X2, X5, X10, R9, R10).
#[test]
fn histories_keep_the_devices_right() {
    let total = std::cell::Cell::new(Outcome::default());
    with_seeds(if cfg!(miri) { 4 } else { 1_500 }, |seed| {
        let plan = Plan::random(&mut Rng::new(seed));
        total.set(total.get().plus(run(plan, seed)));
    });
    // Each kind of event must have occurred.
    let Outcome { counts, device } = total.get();
    let BaseCounts { armed, rearmed, cancelled, fired, migrated, .. } = counts;
    let DeviceCounts { writes, events, spurious, forced, hangs, .. } = device;
    let seen = [armed, rearmed, cancelled, fired, migrated, writes, events, spurious];
    let rare = [forced, hangs];
    if given("TICKLESS_SEED").is_none() && !cfg!(miri) {
        assert!(seen.iter().all(|&count| count > 5_000), "{counts:?} {device:?}");
        assert!(rare.iter().all(|&count| count > 100), "{device:?}");
    }
}

/// Goal: eager writes most and wakes least, lazy the opposite, restart-aware in between (R12).
#[test]
fn policies_trade_writes_for_wakeups() {
    let mut costs = Vec::new();
    for policy in [Policy::Eager, Policy::RestartAware, Policy::Lazy] {
        let total = std::cell::Cell::new(Outcome::default());
        with_seeds(if cfg!(miri) { 2 } else { 300 }, |seed| {
            let plan = Plan::random(&mut Rng::new(seed));
            let limits = Limits::NONE;
            let wheel = WheelEvents::Device;
            let settings = Settings { policy, limits, wheel, ..plan.settings };
            let plan = Plan { settings, interference: Interference::None, ..plan };
            total.set(total.get().plus(run(plan, seed)));
        });
        let DeviceCounts { writes, events, spurious, .. } = total.get().device;
        costs.push((writes, events, spurious));
    }
    if given("TICKLESS_SEED").is_none() && !cfg!(miri) {
        let (eager, lazy) = (costs[0], costs[2]);
        assert!(costs.is_sorted_by(|more, less| more.0 > less.0), "writes: {costs:?}");
        assert!(costs.is_sorted_by(|less, more| less.1 <= more.1), "wakeups: {costs:?}");
        assert!(costs.is_sorted_by(|less, more| less.2 <= more.2), "spurious: {costs:?}");
        assert!(eager.1 < lazy.1 && eager.2 < lazy.2, "{costs:?}");
    }
}

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
    assert!(!timers[0].is_active(), "its callback has ended");
    assert_eq!(scene.armed(HERE), Some(ms(10)), "the second is due");
    assert_eq!(scene.fire(HERE), [2]);
    assert_eq!(scene.armed(HERE), Some(ms(20)));
}
