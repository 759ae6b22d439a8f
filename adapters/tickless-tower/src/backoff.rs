//! Pauses between retries that grow exponentially, with jitter.

use std::fmt;
use std::time::Duration;
use tickless::future::{Sleep, TimerSource};
use tower::retry::backoff::{Backoff, MakeBackoff};
use tower::util::rng::{HasherRng, Rng};

/// Makes an [`ExponentialBackoff`] for each request.
#[derive(Clone, Debug)]
pub struct ExponentialBackoffMaker<R = HasherRng>(ExponentialBackoff<R>);

/// The pauses of one request.
#[derive(Clone, Debug)]
pub struct ExponentialBackoff<R = HasherRng> {
    timers: TimerSource,
    min: Duration,
    max: Duration,
    jitter: f64,
    rng: R,
    pauses: u32,
}

/// The settings of a backoff are invalid. The message names the setting, and what it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidBackoff(&'static str);

impl fmt::Display for InvalidBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidBackoff {}

impl<R: Rng> ExponentialBackoffMaker<R> {
    /// The first pause is `min`. Each further pause is twice the last, at most `max`. A random part
    /// of up to `jitter` times the pause is added to each; `jitter` is from 0 to 100. `timers` are
    /// `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(
        timers: impl Into<TimerSource>,
        min: Duration,
        max: Duration,
        jitter: f64,
        rng: R,
    ) -> Result<ExponentialBackoffMaker<R>, InvalidBackoff> {
        if min > max {
            return Err(InvalidBackoff("the shortest pause must not be longer than the longest"));
        }
        if max.is_zero() {
            return Err(InvalidBackoff("the longest pause must be above zero"));
        }
        if !(0.0..=100.0).contains(&jitter) {
            return Err(InvalidBackoff("the jitter must be from 0 to 100"));
        }
        let timers = timers.into();
        Ok(ExponentialBackoffMaker(ExponentialBackoff { timers, min, max, jitter, rng, pauses: 0 }))
    }
}

impl<R: Rng + Clone> MakeBackoff for ExponentialBackoffMaker<R> {
    type Backoff = ExponentialBackoff<R>;

    fn make_backoff(&mut self) -> ExponentialBackoff<R> {
        self.0.clone()
    }
}

impl<R: Rng> Backoff for ExponentialBackoff<R> {
    type Future = Sleep;

    fn next_backoff(&mut self) -> Sleep {
        let factor = 1_u32.checked_shl(self.pauses).unwrap_or(u32::MAX);
        self.pauses = self.pauses.saturating_add(1);
        let pause = self.min.checked_mul(factor).unwrap_or(self.max).min(self.max);
        if self.jitter == 0.0 {
            return self.timers.sleep(pause);
        }
        let more = pause.as_secs_f64() * self.jitter * self.rng.next_f64();
        let more = Duration::try_from_secs_f64(more).unwrap_or(self.max);
        self.timers.sleep(pause.saturating_add(more).min(self.max))
    }
}
