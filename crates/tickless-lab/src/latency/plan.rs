//! What to measure: threads, interval, end.

use super::{Break, Tally};
use crate::measure::{self, MeasureError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From one wakeup to the next.
    pub interval: Duration,
    /// One for each thread: the CPU where it stays, if it has to.
    pub threads: Vec<Option<usize>>,
    /// `SCHED_FIFO` at this priority, 1 to 99, instead of the usual.
    pub priority: Option<u8>,
    /// How much later than asked the kernel may wake threads that are not real-time.
    pub slack_ns: u64,
    /// Wakeups come this long after whole multiples of the interval; `None` for after the start.
    pub phase: Option<Duration>,
    /// When a measurement ends.
    pub until: Until,
    /// Set to end the measurement at once, with the wakeups so far.
    pub stop: Arc<AtomicBool>,
    /// What ends it at the first wakeup that is too late.
    pub break_at: Option<Arc<Break>>,
}

/// When a measurement ends: at whichever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Until {
    /// After so many wakeups of each thread.
    pub loops: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
}

impl Plan {
    /// Returns whether the measurement was told to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When a thread that begins at `start` ends.
    pub fn end(&self, start: Instant) -> Instant {
        self.until.duration.map_or(Instant::NEVER, |duration| start + duration)
    }

    /// When a thread that begins at `start` wakes first.
    pub fn first(&self, start: Instant) -> Instant {
        let next = start + self.interval;
        let Some(phase) = self.phase else { return next };
        let interval_ns = (self.interval.as_nanos() as u64).max(1);
        Instant::from_nanos(next.as_nanos().next_multiple_of(interval_ns)) + phase
    }

    /// Returns whether a thread is done that has made so many wakeups, would wake next at `next`,
    /// and ends at `end`.
    pub fn is_done(&self, wakeups: u64, next: Instant, end: Instant) -> bool {
        next > end || self.until.loops.is_some_and(|loops| wakeups >= loops) || self.is_stopped()
    }

    /// Counts a wakeup of the calling thread at `now` for `deadline`; ends the measurement if it is
    /// too late.
    pub fn count(&self, tally: &mut Tally, now: Instant, deadline: Instant) {
        if let Some(sample) = self.break_at.as_ref().and_then(|it| it.check(now, deadline)) {
            tally.broke = Some(sample);
            self.stop.store(true, Ordering::Relaxed);
        }
        tally.record(now, deadline);
    }

    /// Makes the calling thread run as planned.
    pub fn prepare(&self, cpu: Option<usize>) -> Result<(), MeasureError> {
        cpu.map_or(Ok(()), measure::stay_on)?;
        self.priority.map_or(Ok(()), measure::be_urgent)?;
        measure::sleep_with_slack(self.slack_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_after_whole_intervals() {
        let mut plan = Plan {
            interval: Duration::from_nanos(1_000),
            threads: Vec::new(),
            priority: None,
            slack_ns: 1,
            phase: None,
            until: Until { loops: Some(3), duration: None },
            stop: Arc::default(),
            break_at: None,
        };
        assert_eq!(plan.first(Instant::from_nanos(5_300)), Instant::from_nanos(6_300));
        plan.phase = Some(Duration::from_nanos(250));
        assert_eq!(plan.first(Instant::from_nanos(5_300)), Instant::from_nanos(7_250));
        assert!(
            plan.is_done(3, Instant::from_nanos(0), Instant::NEVER)
                && !plan.is_done(2, Instant::from_nanos(0), Instant::NEVER)
        );
        assert!(plan.is_done(0, Instant::from_nanos(11), Instant::from_nanos(10)));
        plan.stop.store(true, Ordering::Relaxed);
        assert!(plan.is_done(0, Instant::from_nanos(0), Instant::NEVER));
    }
}
