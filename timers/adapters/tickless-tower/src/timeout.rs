//! A timeout for each request.

use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless::future::TimerSource;
use tower::timeout::error::Elapsed;
use tower::{BoxError, Layer, Service};

/// Makes [`Timeout`]s.
#[derive(Clone, Debug)]
pub struct TimeoutLayer {
    timers: TimerSource,
    timeout: Duration,
}

impl TimeoutLayer {
    /// A request may take `timeout`. `timers` are `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(timers: impl Into<TimerSource>, timeout: Duration) -> TimeoutLayer {
        TimeoutLayer { timers: timers.into(), timeout }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner, timers: self.timers.clone(), timeout: self.timeout }
    }
}

/// A service whose requests fail with tower's [`Elapsed`] if they take too long.
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
    timers: TimerSource,
    timeout: Duration,
}

impl<S> Timeout<S> {
    /// Each request may take `timeout`, counted from the call.
    pub fn new(inner: S, timers: impl Into<TimerSource>, timeout: Duration) -> Timeout<S> {
        TimeoutLayer::new(timers, timeout).layer(inner)
    }

    /// Returns the inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Request> Service<Request> for Timeout<S>
where
    S: Service<Request>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> ResponseFuture<S::Future> {
        let response = self.inner.call(request);
        ResponseFuture { inner: self.timers.timeout_after(self.timeout, response) }
    }
}

pin_project! {
    /// The response, or tower's [`Elapsed`]. If the deadline of a scope around the request ended
    /// it, [`tickless::future::Elapsed`].
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: tickless::future::Timeout<F>,
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, BoxError>> {
        self.project().inner.poll(cx).map(|ended| match ended {
            Ok(response) => response.map_err(Into::into),
            Err(ended) if ended.is_ambient => Err(ended.into()),
            Err(_) => Err(Elapsed::new().into()),
        })
    }
}
