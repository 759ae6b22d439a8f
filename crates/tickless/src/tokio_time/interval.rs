//! Ticks with the names of `tokio::time::Interval`.

use super::{Instant, Sleep, clock, sleep_until};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless_core::time::Ns;

/// A tick that is late by more than this, or by a period if that is shorter, counts as missed.
const TOLERATED: Duration = Duration::from_millis(5);

/// What becomes of the ticks after one that was missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedTickBehavior {
    /// They come at once, one after the other, until all have been made up for.
    #[default]
    Burst,
    /// The next comes a period after the missed one was taken, and so on: the phase moves.
    Delay,
    /// The missed ones are left out, and the next comes when it would have come anyway.
    Skip,
}

/// Ticks every period; from [`interval`] and [`interval_at`].
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

/// Ticks every `period`, first at once.
///
/// # Panics
///
/// If the period is zero; the same with tokio.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant(clock::current().now()), period)
}

/// Ticks every `period`, first at `start`.
///
/// # Panics
///
/// If the period is zero; the same with tokio.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero.");
    Interval { sleep: Box::pin(sleep_until(start)), period, missed: MissedTickBehavior::default() }
}

impl Interval {
    /// Waits for the next tick; yields when it was due. Dropping what this returns loses nothing.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The same, for who polls by hand.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(cx));
        let due = self.sleep.deadline();
        let next = self.after(due, self.sleep.now());
        self.sleep.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// When the tick after the one of `due` is due, which is taken now.
    fn after(&self, due: Instant, now: Instant) -> Instant {
        let late = now - due;
        if late <= TOLERATED && late < self.period {
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

    /// The next tick comes a period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// The next tick comes at once.
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// The next tick comes `after` the present.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(self.sleep.now() + after);
    }

    /// The next tick comes at a point in time.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
    }

    /// What becomes of ticks that are missed.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets what becomes of ticks that are missed: [`MissedTickBehavior::Burst`] unless set.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// The period.
    pub fn period(&self) -> Duration {
        self.period
    }
}
