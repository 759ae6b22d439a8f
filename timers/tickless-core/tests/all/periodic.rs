//! P1, P2, P3: forwarding yields exactly initial + N x period after any delays.

use crate::support::random::{Rng, with_seeds};
use tickless_core::periodic::forward;
use tickless_core::time::{Ns, Window};

/// Goal: after any delays an expiry is initial + N x period with unchanged slack (P1, P3).
#[test]
fn expiries_do_not_drift_over_a_billion_periods() {
    with_seeds(if cfg!(miri) { 2 } else { 20 }, |seed| {
        let mut random = Rng::new(seed);
        // A billion periods of less than 18 s are within the range.
        let (period, slack) = (1 + random.below(17_000_000_000), random.below(1_000_000));
        let initial = 1 + random.below(1 << 40);
        let mut window = Window::new(Ns(initial), Ns(initial + slack));
        assert_eq!(forward(window, Ns(initial - 1), Ns(period)), (window, 0), "not due yet");
        let mut total = 0;
        while total < 1_000_000_000 {
            let missed = random.pick(&[0, 0, 1, 3, 1_000, 1_000_000, 9_000_000]);
            let late = random.below(period);
            let late = random.pick(&[0, late, period - 1]);
            let now = window.soft.0 + random.below(missed + 1) * period + late;
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
