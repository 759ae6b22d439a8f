//! P1, P2, P3: forwarding yields exactly initial + N x period after any delays.

use crate::support::random::{Random, with_seeds};
use tickless_core::periodic::forward;
use tickless_core::time::{Ns, Window};

/// Moves the window by single periods until it begins after `now`.
fn step_by_step(mut window: Window, now: Ns, period: Ns) -> (Window, u64) {
    let mut periods = 0;
    while window.soft <= now {
        window = Window::new(Ns(window.soft.0 + period.0), Ns(window.hard.0 + period.0));
        periods += 1;
    }
    (window, periods)
}

#[test]
fn forward_is_a_loop_over_periods() {
    with_seeds(if cfg!(miri) { 20 } else { 20_000 }, |seed| {
        let mut random = Random::new(seed);
        let soft = random.below(1_000);
        let window = Window::new(Ns(soft), Ns(soft + random.below(50)));
        let (now, period) = (Ns(random.below(3_000)), Ns(1 + random.below(200)));
        assert_eq!(forward(window, now, period), step_by_step(window, now, period));
    });
}

/// Goal: after any delays an expiry is initial + N x period with unchanged slack (P1, P3).
#[test]
fn expiries_do_not_drift_over_a_billion_periods() {
    with_seeds(if cfg!(miri) { 2 } else { 20 }, |seed| {
        let mut random = Random::new(seed);
        // A billion periods of less than 18 s are within the range.
        let (period, slack) = (1 + random.below(17_000_000_000), random.below(1_000_000));
        let initial = random.below(1 << 40);
        let mut window = Window::new(Ns(initial), Ns(initial + slack));
        let mut total = 0;
        while total < 1_000_000_000 {
            let missed = random.pick(&[0, 0, 1, 3, 1_000, 1_000_000, 9_000_000]);
            let now = window.soft.0 + random.below(missed + 1) * period + random.below(period);
            let (next, periods) = forward(window, Ns(now), Ns(period));
            total += periods;
            assert!(periods >= 1);
            assert_eq!(next.soft.0, initial + total * period);
            assert_eq!(next.hard.0, next.soft.0 + slack);
            assert!(next.soft.0 > now && next.soft.0 - period <= now, "the first after now");
            window = next;
        }
    });
}
