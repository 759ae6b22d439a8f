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
use super::names::NameId;
use tickless_core::time::Ns;

/// How many readings of two clocks are used: the first ones.
pub(super) const READINGS_MAX: usize = 1 << 20;

/// With a difference in this range, the trace's clock is CLOCK_MONOTONIC: the difference is the
/// time between reading the clock and printing the line.
const SAME_CLOCK_NS: std::ops::Range<i64> = -1_000..100_000;
/// A difference that is further below the median than this is an outlier.
const BELOW_MEDIAN_NS: i64 = 1_000_000;

/// The times of expiries on both clocks: the first ones.
#[derive(Default)]
pub(super) struct Expiries {
    /// Of the periodic tick, which is on CLOCK_MONOTONIC.
    of_ticks: Vec<(Ns, Ns)>,
    /// Of all timers; empty if there are some of the tick.
    of_all: Vec<(Ns, Ns)>,
}

impl Expiries {
    pub(super) fn see(&mut self, record: &Record, tick_functions: [Option<NameId>; 2]) {
        let Event::HrtimerExpireEntry { now, function, .. } = record.event else { return };
        let list = if tick_functions.contains(&Some(function)) {
            self.of_all = Vec::new();
            &mut self.of_ticks
        } else if self.of_ticks.is_empty() {
            &mut self.of_all
        } else {
            return;
        };
        if list.len() < READINGS_MAX {
            list.push((record.time, now));
        }
    }

    /// Returns how far the trace's clock is ahead of CLOCK_MONOTONIC, in ns; negative when behind.
    /// Uses the expirations of the tick. If there are none, uses those of all timers: few timers
    /// are on other clocks, and the median ignores them. O(n).
    pub(super) fn ahead_ns(&self) -> Option<i64> {
        let expiries = if self.of_ticks.is_empty() { &self.of_all } else { &self.of_ticks };
        let ahead = |&(time, now): &(Ns, Ns)| {
            let ahead = i128::from(time.0) - i128::from(now.0);
            ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        let mut ahead: Vec<i64> = expiries.iter().map(ahead).collect();
        let middle = ahead.len() / 2;
        ahead.get(middle)?;
        let lowest = ahead.select_nth_unstable(middle).1.saturating_sub(BELOW_MEDIAN_NS);
        let smallest = ahead.into_iter().filter(|ns| *ns >= lowest).min()?;
        Some(if SAME_CLOCK_NS.contains(&smallest) { 0 } else { smallest })
    }

    /// Returns how long a trace lasts on its own clock and on the timers' clock, if the two clocks
    /// do not advance alike: then the trace's times are not in seconds. `None` if the trace is too
    /// short or has too few expiries to tell. O(n).
    pub(super) fn wrong_unit(&self) -> Option<(u64, u64)> {
        const EXPIRIES_MIN: usize = 16;
        const SPAN_NS_MIN: u64 = 10_000_000;
        let pairs = &self.of_ticks;
        let quarter = pairs.len() / 4;
        if pairs.len() < EXPIRIES_MIN {
            return None;
        }
        // Medians of the first and the last quarter: a damaged number does not count.
        let median = |pairs: &[(Ns, Ns)], of: fn(&(Ns, Ns)) -> Ns| {
            let mut values: Vec<Ns> = pairs.iter().map(of).collect();
            *values.select_nth_unstable(quarter / 2).1
        };
        let lasts = |of: fn(&(Ns, Ns)) -> Ns| {
            let last = median(&pairs[pairs.len() - quarter..], of);
            last.since(median(&pairs[..quarter], of)).0
        };
        let (trace, timer) = (lasts(|pair| pair.0), lasts(|pair| pair.1));
        let differs = trace.abs_diff(timer) > trace.max(timer) / 4;
        (trace > 0 && trace.max(timer) >= SPAN_NS_MIN && differs).then_some((trace, timer))
    }
}
