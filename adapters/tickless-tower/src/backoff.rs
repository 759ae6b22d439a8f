//! Pauses between retries that grow exponentially, with jitter.

use std::fmt;
use std::time::Duration;
use tickless::future::{Sleep, TimerSource};
use tower::retry::backoff::{Backoff, MakeBackoff};
use tower::util::rng::{HasherRng, Rng};

/// Makes an [`ExponentialBackoff`] for each request.
#[derive(Clone, Debug)]
pub struct ExponentialBackoffMaker<R = HasherRng> {
    timers: TimerSource,
    range: Range,
    rng: R,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    min: Duration,
    max: Duration,
    jitter: f64,
}

/// The reason why a backoff's settings are invalid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InvalidBackoff {
    /// The shortest pause is longer than the longest.
    MinAboveMax {
        /// The shortest pause.
        min: Duration,
        /// The longest pause.
        max: Duration,
    },
    /// The longest pause is zero.
    NoPause,
    /// The jitter is not between 0 and 100.
    Jitter(f64),
}

impl fmt::Display for InvalidBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidBackoff::MinAboveMax { min, max } => {
                write!(f, "the shortest pause, {min:?}, is longer than the longest, {max:?}")
            }
            InvalidBackoff::NoPause => f.write_str("the longest pause must be above zero"),
            InvalidBackoff::Jitter(jitter) => {
                write!(f, "the jitter is {jitter}; it must be from 0 to 100")
            }
        }
    }
}

impl std::error::Error for InvalidBackoff {}

impl<R: Rng> ExponentialBackoffMaker<R> {
    /// The first pause is `min`. Each further pause is twice the last, at most `max`. A random part
    /// of up to `jitter` times the pause is added to each. `timers` are `&Timers`, `&VirtualTime`
    /// or a [`TimerSource`].
    pub fn new(
        timers: impl Into<TimerSource>,
        min: Duration,
        max: Duration,
        jitter: f64,
        rng: R,
    ) -> Result<ExponentialBackoffMaker<R>, InvalidBackoff> {
        if min > max {
            return Err(InvalidBackoff::MinAboveMax { min, max });
        }
        if max.is_zero() {
            return Err(InvalidBackoff::NoPause);
        }
        if !(0.0..=100.0).contains(&jitter) {
            return Err(InvalidBackoff::Jitter(jitter));
        }
        Ok(ExponentialBackoffMaker {
            timers: timers.into(),
            range: Range { min, max, jitter },
            rng,
        })
    }
}

impl<R: Rng + Clone> MakeBackoff for ExponentialBackoffMaker<R> {
    type Backoff = ExponentialBackoff<R>;

    fn make_backoff(&mut self) -> ExponentialBackoff<R> {
        let ExponentialBackoffMaker { timers, range, rng } = self.clone();
        ExponentialBackoff { timers, range, rng, pauses: 0 }
    }
}

/// The pauses of one request.
#[derive(Clone, Debug)]
pub struct ExponentialBackoff<R = HasherRng> {
    timers: TimerSource,
    range: Range,
    rng: R,
    pauses: u32,
}

impl<R: Rng> ExponentialBackoff<R> {
    fn next_pause(&mut self) -> Duration {
        let Range { min, max, jitter } = self.range;
        let factor = 1_u32.checked_shl(self.pauses).unwrap_or(u32::MAX);
        self.pauses = self.pauses.saturating_add(1);
        let pause = min.checked_mul(factor).unwrap_or(max).min(max);
        if jitter == 0.0 {
            return pause;
        }
        let more = pause.as_secs_f64() * jitter * self.rng.next_f64();
        let more = Duration::try_from_secs_f64(more).unwrap_or(max);
        pause.saturating_add(more).min(max)
    }
}

impl<R: Rng> Backoff for ExponentialBackoff<R> {
    type Future = Sleep;

    fn next_backoff(&mut self) -> Sleep {
        let pause = self.next_pause();
        self.timers.sleep(pause)
    }
}
