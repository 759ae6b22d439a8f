//! The offset between CLOCK_MONOTONIC and the trace's own clock.
//!
//! `hrtimer_start` prints deadlines on the timer's clock, mostly CLOCK_MONOTONIC, while the time at
//! the beginning of the line is on the trace's clock. Both are the same clock if ftrace records
//! with `mono`. They differ with ftrace's default `local` and with perf, by seconds after a
//! suspend. `hrtimer_expire_entry` shows both clocks in one line: the line's time, and `now`. The
//! line is printed a little after `now` was read, never before, so the smallest difference is the
//! most exact.

use super::Record;
use super::event::Event;
use super::names::{NameId, Names};
use crate::list::List;

/// How many readings of two clocks are used: the first ones.
pub(super) const READINGS_MAX: usize = 1 << 20;

/// With a difference in this range, the trace's clock is CLOCK_MONOTONIC: the difference is the
/// time between reading the clock and printing the line.
const SAME_CLOCK_NS: std::ops::Range<i64> = -1_000..100_000;
/// A difference that is further below the median than this is an outlier.
const BELOW_MEDIAN_NS: i64 = 1_000_000;

/// Returns how far the trace's clock is ahead of CLOCK_MONOTONIC, in ns; negative when behind. Uses
/// the expirations of the periodic tick, which is on CLOCK_MONOTONIC. If there are none, uses those
/// of all timers: few timers are on other clocks, and the median ignores them. O(n log n).
pub(super) fn ahead_ns(records: &List<Record>, names: &Names) -> Option<i64> {
    let ticks = names.tick_functions();
    let of = |is_its: &dyn Fn(NameId) -> bool| -> Vec<i64> {
        let expiries = records.iter().filter_map(|record| match record.event {
            Event::HrtimerExpireEntry { now, function, .. } if is_its(function) => {
                let ahead = i128::from(record.time.0) - i128::from(now.0);
                Some(ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            _ => None,
        });
        expiries.take(READINGS_MAX).collect()
    };
    let mut ahead = of(&|function| ticks.contains(&Some(function)));
    if ahead.is_empty() {
        ahead = of(&|_| true);
    }
    ahead.sort_unstable();
    let lowest = ahead.get(ahead.len() / 2)?.saturating_sub(BELOW_MEDIAN_NS);
    let smallest = *ahead.iter().find(|&&ns| ns >= lowest)?;
    Some(if SAME_CLOCK_NS.contains(&smallest) { 0 } else { smallest })
}

/// Returns how long a trace lasts on its own clock and on the timers' clock, if the two clocks do
/// not advance alike: then the trace's times are not in seconds. `None` if the trace is too short
/// or has too few expiries to tell. O(n log n).
pub(super) fn wrong_unit(records: &List<Record>, names: &Names) -> Option<(u64, u64)> {
    const EXPIRIES_MIN: usize = 16;
    const SPAN_NS_MIN: u64 = 10_000_000;
    let ticks = names.tick_functions();
    let of_tick = |record: &Record| match record.event {
        Event::HrtimerExpireEntry { now, function, .. } => {
            ticks.contains(&Some(function)).then_some((record.time.0, now.0))
        }
        _ => None,
    };
    let pairs: Vec<(u64, u64)> = records.iter().filter_map(of_tick).take(READINGS_MAX).collect();
    let quarter = pairs.len() / 4;
    if pairs.len() < EXPIRIES_MIN {
        return None;
    }
    // Medians of the first and the last quarter: a damaged number does not count.
    let median = |pairs: &[(u64, u64)], of: fn(&(u64, u64)) -> u64| {
        let mut values: Vec<u64> = pairs.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let lasts = |of: fn(&(u64, u64)) -> u64| {
        let last = median(&pairs[pairs.len() - quarter..], of);
        last.saturating_sub(median(&pairs[..quarter], of))
    };
    let (trace, timer) = (lasts(|pair| pair.0), lasts(|pair| pair.1));
    let differs = trace.abs_diff(timer) > trace.max(timer) / 4;
    (trace > 0 && trace.max(timer) >= SPAN_NS_MIN && differs).then_some((trace, timer))
}
