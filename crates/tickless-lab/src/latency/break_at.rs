//! Ends a measurement at the first wakeup that is too late.

use nix::unistd::gettid;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tickless::time::Instant;

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
    /// late. The thread that woke calls `freeze` at once, which should keep what explains the
    /// lateness, such as a trace buffer. `freeze` should take no longer than a system call.
    pub fn new(above: Duration, freeze: impl Fn() + Send + Sync + 'static) -> Break {
        Break { above, has_ended: AtomicBool::new(false), freeze: Box::new(freeze) }
    }

    /// Checks the calling thread's wakeup. Returns the wakeup if it is the first one of all threads
    /// that is too late.
    pub(super) fn check(&self, now: Instant, deadline: Instant) -> Option<Sample> {
        // If several threads are late at once, only one of them finds `has_ended` unset.
        if now - deadline <= self.above || self.has_ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        (self.freeze)();
        Some(Sample { thread: gettid().as_raw().cast_unsigned(), deadline, now })
    }
}

impl fmt::Debug for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Break").field("above", &self.above).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, Sleeper, Until, measure};
    use super::*;
    use crate::progress::Hidden;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

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
        let plan = |above, freeze| Plan {
            interval: Duration::from_millis(1),
            threads: vec![None, None],
            priority: None,
            slack_ns: 1,
            phase: None,
            until: Until { loops: Some(30), duration: None },
            stop: Arc::default(),
            break_at: Some(Arc::new(Break::new(above, freeze))),
        };
        let sleepers = [Sleeper::ClockNanosleep, Sleeper::Hrtimer];
        let never =
            plan(Duration::from_nanos(1 << 39), Box::new(|| ()) as Box<dyn Fn() + Send + Sync>);
        let slices = measure(&sleepers, &never, 1, &Hidden).unwrap();
        assert!(slices.iter().all(|slice| slice.tally.broke.is_none()));
        assert_eq!(slices[1].tally.lateness.len(), 60);
        let at_once = plan(Duration::ZERO, Box::new(freeze) as Box<dyn Fn() + Send + Sync>);
        let slices = measure(&sleepers, &at_once, 1, &Hidden).unwrap();
        let sample = slices[0].tally.broke.unwrap();
        assert!(sample.late() > Duration::ZERO && sample.thread > 0, "{sample:?}");
        assert!(slices[0].tally.lateness.len() < 60, "{slices:?}");
        assert_eq!((slices[1].tally.broke, slices[1].tally.lateness.len()), (None, 0));
        assert_eq!(frozen.load(Ordering::Relaxed), 1);
    }
}
