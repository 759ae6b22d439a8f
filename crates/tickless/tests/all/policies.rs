//! R12 (rearm policies): exactly which device writes each rearm policy makes.

use crate::support::{AnyTimer, MS};
use tickless::policy::Policy;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

fn with(policy: Policy) -> VirtualTime {
    VirtualTime::with_builder(Timers::builder().bases(1).policy(policy), Instant::from_secs(1))
}

/// Device writes by `work`, on a base with a distant pending timer.
fn writes(policy: Policy, work: impl FnOnce(&VirtualTime)) -> u64 {
    let time = with(policy);
    let anchor = time.timers().hrtimer(|_| {});
    anchor.start(MS * 3_600_000).unwrap();
    let before = time.timers().stats().bases[0].device.writes;
    work(&time);
    time.timers().stats().bases[0].device.writes - before
}

fn each(work: impl Fn(&VirtualTime)) -> [u64; 3] {
    Policy::ALL.map(|policy| writes(policy, &work))
}

/// Goal: cancelling the first timer writes under `Eager` and `RestartAware`, but not under `Lazy`:
/// there a restart for the same deadline finds the device already armed for it.
#[test]
fn device_writes_of_a_thousand_cancels() {
    assert_eq!(Policy::ALL, [Policy::Eager, Policy::Lazy, Policy::RestartAware]);
    for kind in [0, 1] {
        let start_and_cancel = |time: &VirtualTime| {
            let timer = &AnyTimer::both(time.timers(), |_| {})[kind];
            for _ in 0..1000 {
                timer.start(MS * 5).unwrap();
                timer.cancel();
            }
        };
        assert_eq!(each(start_and_cancel), [2000, 1, 2000]);
    }
}

/// Goal: R4 (one write per restart): pushing the first timer out writes twice under `Eager`, once
/// under `RestartAware`, never under `Lazy`. Starting it for its current deadline writes twice
/// under `Eager`, otherwise nothing. Pushing out any other timer writes nothing.
#[test]
fn device_writes_of_a_thousand_push_outs() {
    let first = |time: &VirtualTime| {
        let timer = time.timers().hrtimer(|_| {});
        for later in 0..1000 {
            timer.start(MS * (5 + later)).unwrap();
        }
        timer.cancel();
    };
    assert_eq!(each(first), [1 + 2 * 999 + 1, 1, 1 + 999 + 1]);
    let to_the_same = |time: &VirtualTime| {
        let timer = time.timers().hrtimer(|_| {});
        (0..1000).for_each(|_| assert!(timer.start(MS * 5).is_ok()));
        timer.cancel();
    };
    assert_eq!(each(to_the_same), [1 + 2 * 999 + 1, 1, 1 + 1]);
    let others = |time: &VirtualTime| {
        let (first, other) = (time.timers().hrtimer(|_| {}), time.timers().timeout(|_| {}));
        first.start(MS).unwrap();
        for later in 0..1000 {
            other.start(MS * (100 + later)).unwrap();
            other.start(MS * (1100 - later)).unwrap();
        }
        other.cancel();
        first.cancel();
    };
    assert_eq!(each(others), [1 + 1, 1, 1 + 1]);
}

/// Goal: R1 (armed in time), R2 (lazy removals).
#[test]
fn no_policy_fires_late() {
    for policy in Policy::ALL {
        let time = with(policy);
        let begin = time.now();
        let timers: Vec<_> = (0..50).map(|_| AnyTimer::both(time.timers(), |_| {})).collect();
        for (both, at) in timers.iter().zip(1..) {
            both.iter().for_each(|timer| _ = timer.start(MS * at).unwrap());
        }
        for (both, at) in timers.iter().zip(0..) {
            if at % 10 != 9 {
                both.iter().for_each(|timer| _ = timer.cancel());
            }
        }
        time.advance(MS * 10);
        assert_eq!(time.timers().stats().total().fired, 2, "{policy:?}");
        while time.advance_to_next() {}
        let stats = time.timers().stats();
        assert_eq!((stats.total().fired, stats.pending()), (10, 0));
        assert_eq!(time.now(), begin + MS * 50, "the last one is on time");
    }
}
