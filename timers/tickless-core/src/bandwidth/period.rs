//! Refill periods: the shortest and the longest, and how many of them have passed at a given time.

use crate::time::Ns;

/// The shortest period: 100 us. With a shorter one, most of the time would go into refills.
pub const PERIOD_MIN: Ns = Ns::from_us(100);

/// The longest period: 18 years. The range of the clock, 584 years, is 32 such periods.
pub const PERIOD_LIMIT: Ns = Ns(u64::MAX >> 5);

/// Moves `next`, the time of the next refill, beyond `now` by whole periods. Returns the number of
/// refills that were due.
pub(crate) fn pass_refills(next: &mut Ns, period: Ns, now: Ns) -> u64 {
    let periods = (now.0 - next.0) / period.0 + 1;
    *next = next.after(Ns(periods.saturating_mul(period.0)));
    periods
}

/// Returns the time of the refill after which at least `missing` has been added, if the first
/// refill is at `next` and each adds `quota`. Returns `now` if nothing is missing.
pub(crate) fn refilled_at(missing: i128, quota: u64, next: Ns, period: Ns, now: Ns) -> Ns {
    let refills = missing.max(0).unsigned_abs().div_ceil(u128::from(quota));
    match u64::try_from(refills).unwrap_or(u64::MAX) {
        0 => now,
        refills => next.after(Ns(period.0.saturating_mul(refills - 1))),
    }
}
