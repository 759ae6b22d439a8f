//! Where CLOCK_MONOTONIC lies on the trace's own clock.
//!
//! `hrtimer_start` prints deadlines on the timer's clock, mostly CLOCK_MONOTONIC, while the
//! line's time is on the trace's: the same with ftrace's `mono`, another with its default
//! `local` and with perf, seconds apart after a suspend. `hrtimer_expire_entry` has both
//! clocks in one line. The line is printed a little after `now` was read, never before, so
//! the smallest difference is the nearest to the truth.

use tickless_core::time::Ns;

use super::Records;
use super::event::{Event, EventKind};
use super::names::{NameId, Names};

/// How far the trace's clock is ahead of CLOCK_MONOTONIC; negative when behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MonotonicOffset {
    /// Nanoseconds to add to a CLOCK_MONOTONIC time. Zero if the two seem to be one clock.
    pub ns: i64,
    /// How many events it was measured with.
    pub samples: usize,
}

/// The tick's callback: `tick_sched_timer` until Linux 6.7. It is always on CLOCK_MONOTONIC.
pub(super) fn tick_callbacks(names: &Names) -> [Option<NameId>; 2] {
    [names.find("tick_nohz_handler"), names.find("tick_sched_timer")]
}

impl MonotonicOffset {
    /// A smaller difference is the time it takes from reading the clock to printing.
    const SAME_CLOCK_NS: std::ops::Range<i64> = -1_000..100_000;
    /// How far below the median a difference may lie and still be one of the usual ones.
    const USUAL_NS: i64 = 1_000_000;

    /// When on the trace's clock CLOCK_MONOTONIC shows `time`. [`Ns::NEVER`] stays.
    pub fn trace_time(&self, time: Ns) -> Ns {
        if time == Ns::NEVER { Ns::NEVER } else { Ns(time.0.saturating_add_signed(self.ns)) }
    }

    /// Measures it. Uses the tick's expirations if there are any, else all: timers on
    /// CLOCK_REALTIME are rare, and the median passes them over. O(n log n).
    pub(super) fn measure(records: &Records, names: &Names) -> Option<MonotonicOffset> {
        let ticks = tick_callbacks(names);
        let (mut of_ticks, mut of_all) = (Vec::new(), Vec::new());
        for record in records.of_kinds(&[EventKind::HrtimerExpireEntry]) {
            if let Event::HrtimerExpireEntry { now, function, .. } = record.event {
                let ahead = i128::from(record.time.0) - i128::from(now.0);
                let ahead = ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                of_all.push(ahead);
                if ticks.contains(&Some(function)) {
                    of_ticks.push(ahead);
                }
            }
        }
        let mut ahead = if of_ticks.is_empty() { of_all } else { of_ticks };
        ahead.sort_unstable();
        let usual_from = ahead.get(ahead.len() / 2)?.saturating_sub(Self::USUAL_NS);
        let least = *ahead.iter().find(|&&ns| ns >= usual_from)?;
        let ns = if Self::SAME_CLOCK_NS.contains(&least) { 0 } else { least };
        Some(MonotonicOffset { ns, samples: ahead.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Trace;

    fn measured(lines: &[&str]) -> Option<MonotonicOffset> {
        let text = format!("# tracer: nop\n{}\n", lines.join("\n"));
        Trace::parse("t", text.as_bytes()).unwrap().monotonic
    }

    const WAKEUP: &str = " a-1 [000] d.h1.  100.000050: hrtimer_expire_entry: hrtimer=00000001";
    const TICK: &str = " a-1 [001] d.h1.  100.000060: hrtimer_expire_entry: hrtimer=00000002";

    #[test]
    fn a_few_microseconds_are_the_same_clock() {
        let tick = format!("{TICK} function=tick_nohz_handler now=100000058000");
        assert_eq!(measured(&[&tick]), Some(MonotonicOffset { ns: 0, samples: 1 }));
    }

    /// Goal: a timer on another clock does not count where the tick is there.
    #[test]
    fn ticks_are_trusted_before_others() {
        let other = format!("{WAKEUP} function=hrtimer_wakeup now=1700000000000000000");
        let tick = format!("{TICK} function=tick_sched_timer now=70000000000");
        let found = measured(&[&other, &other, &tick]).unwrap();
        assert_eq!(found, MonotonicOffset { ns: 30_000_060_000, samples: 1 });
        assert_eq!(found.trace_time(Ns(70_000_000_000)), Ns(100_000_060_000));
        assert_eq!(found.trace_time(Ns::NEVER), Ns::NEVER);
    }

    #[test]
    fn the_least_of_the_usual_differences_counts() {
        let at = |now: u64| format!("{WAKEUP} function=hrtimer_wakeup now={now}");
        // The trace clock is 2 s behind; one line was printed late, one is damaged.
        let lines =
            [102_000_030_000, 102_000_049_000, 101_990_000_000, 102_000_048_000, 109_000_000_000];
        let lines: Vec<String> = lines.map(at).to_vec();
        let found = measured(&lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(found.ns, 100_000_050_000 - 102_000_049_000);
    }

    #[test]
    fn without_expirations_it_is_unknown() {
        assert_eq!(measured(&[" a-1 [000] .....  1.000000: timer_cancel: timer=00000001"]), None);
    }
}
