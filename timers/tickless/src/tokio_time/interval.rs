//! The counterpart of `tokio::time::Interval`.

use super::{Instant, Sleep};
use crate::tokio_runtime::{self, current};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless_core::time::Ns;

/// A tick that is late by more than this, or than a period if that is shorter, counts as missed.
const TOLERATED: Duration = Duration::from_millis(5);

/// What happens to the ticks after a missed tick.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MissedTickBehavior {
    /// Overdue ticks complete immediately, one after another, until none is left.
    #[default]
    Burst,
    /// The next tick is due one period after the late one was taken. Later ticks follow from there.
    Delay,
    /// Missed ticks are skipped. Later ticks keep their times.
    Skip,
}

/// Ticks every period; from [`interval`] and [`interval_at`].
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

/// Returns an interval that ticks every `period`. The first tick completes immediately.
///
/// # Panics
///
/// If the period is zero, as in tokio.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant(tokio_runtime::now()), period)
}

/// Returns an interval that ticks every `period`. The first tick is due at `start`.
///
/// # Panics
///
/// If the period is zero, as in tokio.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero.");
    let sleep = Box::pin(Sleep::new(&current(), start.0, period));
    Interval { sleep, period, missed: MissedTickBehavior::default() }
}

impl Interval {
    /// Waits for the next tick and returns when it was due. Dropping the future loses no tick.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(cx));
        let due = self.sleep.deadline();
        let next = match self.leave_ended_runtime() {
            Some(now) => now + self.period,
            None => self.after(due, self.sleep.now()),
        };
        self.sleep.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// Moves an interval whose runtime has ended to the timers of the caller's context. Returns the
    /// time on their clock.
    fn leave_ended_runtime(&mut self) -> Option<Instant> {
        self.sleep.runtime_has_ended().then(|| {
            let (timers, now) = (current(), tokio_runtime::now());
            self.sleep = Box::pin(Sleep::new(&timers, now, self.period));
            Instant(now)
        })
    }

    /// Returns when the next tick is due, after a tick due at `due` that was taken at `now`.
    fn after(&self, due: Instant, now: Instant) -> Instant {
        let late = now - due;
        if late <= TOLERATED.min(self.period) {
            return due + self.period;
        }
        match self.missed {
            MissedTickBehavior::Burst => due + self.period,
            MissedTickBehavior::Delay => now + self.period,
            MissedTickBehavior::Skip => {
                let (late, period) = (Ns::from_duration(late).0, Ns::from_duration(self.period).0);
                now + Duration::from_nanos(period - late % period)
            }
        }
    }

    /// Makes the next tick due one period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Makes the next tick due immediately.
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Makes the next tick due when `after` has passed.
    pub fn reset_after(&mut self, after: Duration) {
        self.leave_ended_runtime();
        self.reset_at(self.sleep.now() + after);
    }

    /// Makes the next tick due at `deadline`.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
    }

    /// Returns what happens to missed ticks.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets what happens to missed ticks; the default is [`MissedTickBehavior::Burst`].
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.period
    }
}
