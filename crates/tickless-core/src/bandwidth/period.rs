//! Periods: how short, how long, how often doubled, and how many have passed.

use crate::time::Ns;

/// The shortest period: 100 us. Below, refilling costs more than it is worth.
pub const PERIOD_MIN: Ns = Ns::from_us(100);

/// The longest period: 18 years. One that is stretched as far as can be has half the range of the
/// clock, so that its second refill still fits it.
pub const PERIOD_LIMIT: Ns = Ns(u64::MAX >> (1 + STRETCH_MAX));

/// How often a period may be doubled.
pub(crate) const STRETCH_MAX: u32 = 4;

/// Passes the refills that are due by `now`, the next of them included. Returns how many.
pub(crate) fn pass_refills(next: &mut Ns, period: Ns, now: Ns) -> u64 {
    let periods = (now.0 - next.0) / period.0 + 1;
    *next = next.after(Ns(periods.saturating_mul(period.0)));
    periods
}
