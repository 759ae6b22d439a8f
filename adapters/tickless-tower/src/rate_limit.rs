//! So many requests in every period.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless::future::{Sleep, TimerSource};
use tickless::time::Instant;
use tower::{Layer, Service};

/// Makes [`RateLimit`]s. Each service that it makes has the whole rate for itself.
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    timers: TimerSource,
    rate: Rate,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    requests: u64,
    per: Duration,
}

/// A rate of nothing, or in no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidRate {
    /// The requests that were asked for.
    pub requests: u64,
    /// The period that was asked for.
    pub per: Duration,
}

impl fmt::Display for InvalidRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidRate { requests, per } = self;
        write!(f, "a rate of {requests} requests in {per:?}; both must be above zero")
    }
}

impl std::error::Error for InvalidRate {}

impl RateLimitLayer {
    /// At most `requests` in every period of `per`, the first of which begins with the first
    /// request. The timers: `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(
        timers: impl Into<TimerSource>,
        requests: u64,
        per: Duration,
    ) -> Result<RateLimitLayer, InvalidRate> {
        if requests == 0 || per.is_zero() {
            return Err(InvalidRate { requests, per });
        }
        Ok(RateLimitLayer { timers: timers.into(), rate: Rate { requests, per } })
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        let period_ends = self.timers.now();
        RateLimit {
            inner,
            rate: self.rate,
            left: self.rate.requests,
            period_ends,
            sleep: Box::pin(self.timers.sleep_until(period_ends).with_slack(Duration::ZERO)),
            timers: self.timers.clone(),
        }
    }
}

/// A service that is not ready when its period's requests are used up.
#[derive(Debug)]
pub struct RateLimit<S> {
    inner: S,
    timers: TimerSource,
    rate: Rate,
    /// The requests of this period that are left.
    left: u64,
    period_ends: Instant,
    /// What is waited for when none is left.
    sleep: Pin<Box<Sleep>>,
}

impl<S> RateLimit<S> {
    /// At most `requests` in every period of `per`.
    pub fn new(
        inner: S,
        timers: impl Into<TimerSource>,
        requests: u64,
        per: Duration,
    ) -> Result<RateLimit<S>, InvalidRate> {
        Ok(RateLimitLayer::new(timers, requests, per)?.layer(inner))
    }

    /// The service without its limit.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn begin_period(&mut self, now: Instant) {
        self.period_ends = now + self.rate.per;
        self.left = self.rate.requests;
    }
}

impl<S, Request> Service<Request> for RateLimit<S>
where
    S: Service<Request>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.left == 0 {
            ready!(self.sleep.as_mut().poll(cx));
            let now = self.timers.now();
            self.begin_period(now);
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        let now = self.timers.now();
        if now >= self.period_ends {
            self.begin_period(now);
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.sleep.as_mut().reset_at(self.period_ends);
        }
        self.inner.call(request)
    }
}
