//! What to measure: threads, interval, end.

use crate::LabError;
use crate::measure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::time::Instant;

#[derive(Clone, Default, Debug)]
pub struct Plan {
    pub interval: Duration,
    /// One entry for each thread: the CPU to which it is bound, or `None` for any CPU.
    pub threads: Vec<Option<usize>>,
    /// The real-time priority, from 1 to 99, under `SCHED_FIFO`. `None` for the usual scheduling.
    pub priority: Option<u8>,
    /// The timer slack: how much later than requested the kernel may wake threads that are not
    /// real-time.
    pub slack_ns: u64,
    /// Deadlines are this long after whole multiples of the interval. With `None`, they are whole
    /// intervals after the start.
    pub phase: Option<Duration>,
    pub until: Until,
    /// Set this to end the measurement at once and keep the wakeups so far.
    pub stop: Arc<AtomicBool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Until {
    pub loops: Option<u64>,
    pub duration: Option<Duration>,
}

impl Plan {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn end(&self, start: Instant) -> Instant {
        self.until.duration.map_or(Instant::NEVER, |duration| start + duration)
    }

    pub fn first(&self, start: Instant) -> Instant {
        let next = start + self.interval;
        let Some(phase) = self.phase else { return next };
        let interval_ns = (self.interval.as_nanos() as u64).max(1);
        Instant::from_nanos(next.as_nanos().next_multiple_of(interval_ns)) + phase
    }

    pub fn is_done(&self, wakeups: u64, next: Instant, end: Instant) -> bool {
        next > end || self.until.loops.is_some_and(|loops| wakeups >= loops) || self.is_stopped()
    }

    pub fn prepare(&self, cpu: Option<usize>) -> Result<(), LabError> {
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
            until: Until { loops: Some(3), duration: None },
            ..Plan::default()
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
