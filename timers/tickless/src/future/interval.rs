//! A future that ticks periodically.

use super::Sleep;
use crate::periodic::Missed;
use crate::timer::shared::Handle;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless_core::time::{Instant, Ns};

/// An interval without drift, from [`interval`](super::interval). Allocates once. Ticks are due at
/// whole periods after the first tick, however late the task awaits each of them. If it is on the
/// clock of a runtime that ends, one tick comes then, and no other.
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Ns,
    missed: Missed,
}

/// One tick of an [`Interval`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Tick {
    /// When the tick was due.
    pub due: Instant,
    /// How many ticks were missed since the previous one; with [`Missed::Burst`], how many overdue
    /// ticks are still to come.
    pub overruns: u64,
}

impl Interval {
    pub(super) fn new(
        timers: Option<&Handle>,
        first: Instant,
        period: Duration,
        slack: Ns,
    ) -> Interval {
        let period = Ns::from_duration(period).max(Ns(1));
        let sleep = Sleep::new(timers, first, slack);
        Interval { sleep: Box::pin(sleep), period, missed: Missed::Skip }
    }

    /// Sets what happens to ticks that the task did not take in time. The default is
    /// [`Missed::Skip`]: they are counted and skipped, and later ticks keep their times.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Interval {
        self.missed = missed;
        self
    }

    /// Lets each tick be late by up to `slack`, to share a wakeup with other timers.
    #[must_use]
    pub fn slack(self, slack: Duration) -> Interval {
        self.sleep.set_slack(slack);
        self
    }

    /// Sets when the next tick is due. Later ticks follow at whole periods after it.
    pub fn reset_at(&mut self, next: Instant) {
        self.sleep.as_mut().reset_at(next);
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.period.to_duration()
    }

    /// Waits for the next tick. Dropping the future loses no tick: the next call returns it.
    pub fn tick(&mut self) -> impl Future<Output = Tick> {
        NextTick(self)
    }

    /// Polls for the next tick.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Tick> {
        ready!(self.sleep.as_mut().poll(cx));
        let due = self.sleep.deadline();
        let (from, now) = (due.to_ns(), self.sleep.now().to_ns());
        // The clock of a runtime that has ended is at the end of time, where nothing was missed.
        let has_ended = now >= Ns(Ns::NEVER.0 - 1);
        let behind = if has_ended { 0 } else { now.since(from).0 / self.period.0 };
        let next = match self.missed {
            _ if has_ended => Ns::NEVER,
            Missed::Skip => from.after(Ns(self.period.0.saturating_mul(behind.saturating_add(1)))),
            Missed::Burst => from.after(self.period),
            Missed::Delay => from.max(now).after(self.period),
        };
        self.sleep.as_mut().reset_at(next.into());
        Poll::Ready(Tick { due, overruns: behind })
    }
}

/// The future of `Interval::tick`: a named type, so that its `poll` can be `track_caller`.
struct NextTick<'a>(&'a mut Interval);

impl Future for NextTick<'_> {
    type Output = Tick;

    #[cfg_attr(debug_assertions, track_caller)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Tick> {
        self.0.poll_tick(cx)
    }
}
