//! What is to be measured: threads, interval, end.

use crate::measure::{self, MeasureError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::Ns;

/// What is to be measured.
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
    /// Set when it is to end at once, with what there is.
    pub stop: Arc<AtomicBool>,
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
    /// Was it told to end?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When a thread that begins at `start` ends.
    pub fn end(&self, start: Ns) -> Ns {
        self.until.duration.map_or(Ns::NEVER, |duration| start + duration)
    }

    /// When a thread that begins at `start` wakes first.
    pub fn first(&self, start: Ns) -> Ns {
        let next = start + self.interval;
        let Some(phase) = self.phase else { return next };
        let interval_ns = Ns::from_duration(self.interval).0.max(1);
        Ns(next.0.next_multiple_of(interval_ns)) + phase
    }

    /// Has a thread done enough that has made so many wakeups, would wake next at `next`, and
    /// ends at `end`?
    pub fn is_over(&self, wakeups: u64, next: Ns, end: Ns) -> bool {
        next > end || self.until.loops.is_some_and(|loops| wakeups >= loops) || self.is_stopped()
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
        };
        assert_eq!(plan.first(Ns(5_300)), Ns(6_300));
        plan.phase = Some(Duration::from_nanos(250));
        assert_eq!(plan.first(Ns(5_300)), Ns(7_250));
        assert!(plan.is_over(3, Ns(0), Ns::NEVER) && !plan.is_over(2, Ns(0), Ns::NEVER));
        assert!(plan.is_over(0, Ns(11), Ns(10)));
        plan.stop.store(true, Ordering::Relaxed);
        assert!(plan.is_over(0, Ns(0), Ns::NEVER));
    }
}
