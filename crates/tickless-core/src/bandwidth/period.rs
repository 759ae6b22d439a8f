//! Periods: their limits, and the number of periods that have passed.

use crate::time::Ns;

/// The shortest period: 100 us. With a shorter one, most of the time would go into refills.
pub const PERIOD_MIN: Ns = Ns::from_us(100);

/// The longest period: 18 years. Doubled `STRETCH_MAX` times, it covers half the range of the
/// clock, so that the second refill is still within that range.
pub const PERIOD_LIMIT: Ns = Ns(u64::MAX >> (1 + STRETCH_MAX));

/// The number of times that a period may be doubled.
pub(crate) const STRETCH_MAX: u32 = 4;

/// Moves `next`, the time of the next refill, beyond `now` by whole periods. Returns the number of
/// refills that were due.
pub(crate) fn pass_refills(next: &mut Ns, period: Ns, now: Ns) -> u64 {
    let periods = (now.0 - next.0) / period.0 + 1;
    *next = next.after(Ns(periods.saturating_mul(period.0)));
    periods
}
