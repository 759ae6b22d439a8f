//! Periods: expiry = initial + N x period, exactly, for every N (P1).

use crate::time::{Ns, Window};

/// Moves a window on by whole periods until it begins after `now`.
///
/// Returns the window and by how many periods it was moved: 0 if it had not begun, 1 if it was
/// on time, more if expiries were missed. Both ends move alike, so a phase and a slack that
/// were chosen at the start stay (P2, P3). A period of zero counts as one nanosecond. At the
/// end of the 64-bit range the window stops at [`Ns::NEVER`].
pub fn forward(window: Window, now: Ns, period: Ns) -> (Window, u64) {
    if now < window.soft {
        return (window, 0);
    }
    let period = period.0.max(1);
    // At least one: the beginning of the window has passed.
    let periods = ((now.0 - window.soft.0) / period).saturating_add(1);
    let by = Ns(periods.saturating_mul(period));
    (Window::new(window.soft.after(by), window.hard.after(by)), periods)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Window {
        Window::new(Ns(ns), Ns(ns + 3))
    }

    #[test]
    fn on_time_early_and_late() {
        assert_eq!(forward(at(100), Ns(99), Ns(10)), (at(100), 0));
        assert_eq!(forward(at(100), Ns(100), Ns(10)), (at(110), 1));
        assert_eq!(forward(at(100), Ns(109), Ns(10)), (at(110), 1));
        assert_eq!(forward(at(100), Ns(110), Ns(10)), (at(120), 2));
        assert_eq!(forward(at(100), Ns(1_000_005), Ns(10)), (at(1_000_010), 99_991));
    }

    #[test]
    fn absurd_periods_and_the_end_of_time() {
        assert_eq!(forward(at(100), Ns(100), Ns(0)), (at(101), 1));
        let (window, _) = forward(at(100), Ns(u64::MAX - 1), Ns(u64::MAX / 2));
        assert_eq!(window.soft, Ns::NEVER);
        assert_eq!(forward(at(0), Ns::NEVER, Ns(1)).1, u64::MAX);
    }
}
