//! What to measure: threads, interval, end.

use super::Tally;
use crate::error::LabError;
use crate::measure;
use rustix::thread::gettid;
use std::fmt;
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
    /// The timer slack: how late the kernel is allowed to wake threads that are not real-time.
    pub slack_ns: u64,
    /// Deadlines are this long after times that are multiples of the interval. With `None`, they
    /// are whole intervals after the start.
    pub phase: Option<Duration>,
    /// The measurement ends after this many wakeups of each thread, or this time; `None`: no limit.
    pub loops: Option<u64>,
    pub duration: Option<Duration>,
    /// Set this to end the measurement at once and keep the wakeups so far.
    pub stop: Arc<AtomicBool>,
    pub break_at: Option<Arc<Break>>,
}

impl Plan {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn end(&self, start: Instant) -> Instant {
        self.duration.map_or(Instant::NEVER, |duration| start + duration)
    }

    /// Returns the first deadline: at least one interval after `start`, and at the requested phase.
    pub fn first(&self, start: Instant) -> Instant {
        let next = start + self.interval;
        let Some(phase) = self.phase else { return next };
        let interval_ns = (self.interval.as_nanos() as u64).max(1);
        Instant::from_nanos(next.as_nanos().next_multiple_of(interval_ns)) + phase
    }

    pub fn is_done(&self, wakeups: u64, next: Instant, end: Instant) -> bool {
        next > end || self.loops.is_some_and(|loops| wakeups >= loops) || self.is_stopped()
    }

    /// Records a wakeup of the calling thread at `now` for `deadline`. If the wakeup is too late,
    /// stops the measurement of all threads.
    pub fn count(&self, tally: &mut Tally, now: Instant, deadline: Instant) {
        if let Some(sample) = self.break_at.as_ref().and_then(|it| it.check(now, deadline)) {
            tally.broke = Some(sample);
            self.stop.store(true, Ordering::Relaxed);
        }
        tally.record(now, deadline);
    }

    /// Prepares a measuring thread: CPU, priority and timer slack.
    pub fn prepare(&self, cpu: Option<usize>) -> Result<(), LabError> {
        cpu.map_or(Ok(()), measure::stay_on)?;
        self.priority.map_or(Ok(()), measure::be_urgent)?;
        measure::sleep_with_slack(self.slack_ns)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    pub thread: u32,
    pub deadline: Instant,
    pub now: Instant,
}

impl Sample {
    pub fn late(&self) -> Duration {
        self.now - self.deadline
    }
}

pub struct Break {
    above: Duration,
    has_ended: AtomicBool,
    freeze: Box<dyn Fn() + Send + Sync>,
}

impl Break {
    /// Makes a `Break` that ends the measurement at the first wakeup that is more than `above`
    /// late. The thread that woke late calls `freeze` at once. `freeze` should preserve data that
    /// explains the lateness, such as a trace buffer, and should take no longer than a system call.
    pub fn new(above: Duration, freeze: impl Fn() + Send + Sync + 'static) -> Break {
        Break { above, has_ended: AtomicBool::new(false), freeze: Box::new(freeze) }
    }

    /// Ends the measurement if the wakeup at `now` is too late, and returns that wakeup.
    pub(super) fn check(&self, now: Instant, deadline: Instant) -> Option<Sample> {
        // If several threads are late at once, only one of them finds `has_ended` unset.
        if now - deadline <= self.above || self.has_ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        (self.freeze)();
        Some(Sample { thread: gettid().as_raw_pid().cast_unsigned(), deadline, now })
    }
}

impl fmt::Debug for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Break").field("above", &self.above).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sleeper, measure};
    use super::*;
    use crate::progress::Hidden;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_phase_is_after_whole_intervals() {
        let mut plan =
            Plan { interval: Duration::from_nanos(1_000), loops: Some(3), ..Plan::default() };
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

    /// Goal: the first wakeup that is too late ends the measurement and is returned with its
    /// thread. `freeze` is called once, although several threads are late. Wakeups within the limit
    /// do not end the measurement.
    #[test]
    fn the_first_late_wakeup_ends_it() {
        let frozen = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&frozen);
        let freeze = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let measured = |at_break: Break| {
            let plan = Plan {
                interval: Duration::from_millis(1),
                threads: vec![None, None],
                slack_ns: 1,
                loops: Some(30),
                break_at: Some(Arc::new(at_break)),
                ..Plan::default()
            };
            measure(&[Sleeper::ClockNanosleep, Sleeper::Hrtimer], &plan, 1, &Hidden).unwrap()
        };
        let slices = measured(Break::new(Duration::from_nanos(1 << 39), || ()));
        assert!(slices.iter().all(|slice| slice.tally.broke.is_none()));
        assert_eq!(slices[1].tally.lateness.len(), 60);
        let slices = measured(Break::new(Duration::ZERO, freeze));
        let sample = slices[0].tally.broke.unwrap();
        assert!(sample.late() > Duration::ZERO && sample.thread > 0, "{sample:?}");
        assert!(slices[0].tally.lateness.len() < 60, "{slices:?}");
        assert_eq!((slices[1].tally.broke, slices[1].tally.lateness.len()), (None, 0));
        assert_eq!(frozen.load(Ordering::Relaxed), 1);
    }
}
