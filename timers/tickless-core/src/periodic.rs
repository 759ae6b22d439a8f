//! Expiries of periodic timers: initial + N x period, exactly, so that no error accumulates.

use crate::time::{Ns, Window};

/// Moves a window by whole periods until it begins after `now`.
///
/// Returns the window and the number of periods by which it moved: 0 if it had not begun, 1 if no
/// expiry was missed, otherwise more. Both ends move by the same time, so that the phase and the
/// slack chosen at the start are kept. A period of zero counts as one nanosecond. At the end of the
/// 64-bit range the window stops at [`Ns::NEVER`].
pub fn forward(window: Window, now: Ns, period: Ns) -> (Window, u64) {
    if now < window.soft {
        return (window, 0);
    }
    let period = period.0.max(1);
    // At least one: the window has begun.
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
    fn zero_periods_and_the_end_of_the_range() {
        assert_eq!(forward(at(100), Ns(99), Ns(7)), (at(100), 0), "not due yet");
        assert_eq!(forward(at(100), Ns(100), Ns(0)), (at(101), 1));
        let (window, _) = forward(at(100), Ns(u64::MAX - 1), Ns(u64::MAX / 2));
        assert_eq!(window.soft, Ns::NEVER);
        assert_eq!(forward(at(0), Ns::NEVER, Ns(1)).1, u64::MAX);
    }
}
