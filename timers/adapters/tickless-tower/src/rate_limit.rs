//! A limit on the number of requests in each period.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless::future::{Sleep, TimerSource};
use tickless::time::Instant;
use tower::{Layer, Service};

/// Makes [`RateLimit`]s. Each service that it makes has the whole rate to itself.
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

/// A rate of zero requests, or with a period of zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidRate {
    /// The requested number of requests.
    pub requests: u64,
    /// The requested period.
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
    /// Allows `requests` in each period of `per`. The first period begins with the first request.
    /// `timers` are `&Timers`, `&VirtualTime` or a [`TimerSource`].
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
            sleep: Box::pin(self.timers.sleep_until(period_ends).slack(Duration::ZERO)),
            timers: self.timers.clone(),
        }
    }
}

/// A service that is not ready while the requests of the current period are used up.
#[derive(Debug)]
pub struct RateLimit<S> {
    inner: S,
    timers: TimerSource,
    rate: Rate,
    left: u64,
    period_ends: Instant,
    /// The sleep until the next period, if no request remains.
    sleep: Pin<Box<Sleep>>,
}

impl<S> RateLimit<S> {
    /// Allows `requests` in each period of `per`.
    pub fn new(
        inner: S,
        timers: impl Into<TimerSource>,
        requests: u64,
        per: Duration,
    ) -> Result<RateLimit<S>, InvalidRate> {
        Ok(RateLimitLayer::new(timers, requests, per)?.layer(inner))
    }

    /// Returns the inner service.
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
