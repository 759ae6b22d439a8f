//! The deadline of a request, from and to its headers.

use http::Request;
use pin_project_lite::pin_project;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tickless::future::{DeadlineScope, TimerSource, propagate_deadline};
use tickless_http::{DeadlineHeader, NoTimeLeft};
use tower::{BoxError, Layer, Service};

/// Runs each request that a server receives in a
/// [`deadline_scope`](tickless::future::deadline_scope), with the time in its header. A request
/// that misses its deadline fails with [`tickless::future::Elapsed`].
#[derive(Clone, Debug)]
pub struct DeadlineLayer {
    timers: TimerSource,
    header: DeadlineHeader,
}

impl DeadlineLayer {
    /// Reads `header`. `timers` are `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(timers: impl Into<TimerSource>, header: DeadlineHeader) -> DeadlineLayer {
        DeadlineLayer { timers: timers.into(), header }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, layer: self.clone() }
    }
}

/// A service whose requests have the deadline of their header; from [`DeadlineLayer`].
#[derive(Clone, Debug)]
pub struct Deadline<S> {
    inner: S,
    layer: DeadlineLayer,
}

impl<S, B> Service<Request<B>> for Deadline<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> DeadlineFuture<S::Future> {
        let DeadlineLayer { timers, header } = &self.layer;
        let at = header.deadline(timers, request.headers());
        // The inner service is called inside of the scope, too: it may read the deadline.
        let inner = &mut self.inner;
        let mut request = Some(request);
        let call = poll_fn(|_| Poll::Ready(request.take().map(|request| inner.call(request))));
        let call = pin!(timers.deadline_scope(at, call));
        let Poll::Ready(Ok(Some(response))) = call.poll(&mut Context::from_waker(Waker::noop()))
        else {
            unreachable!("the future is ready when it is first polled")
        };
        DeadlineFuture { call: Some(timers.deadline_scope(at, response)) }
    }
}

/// Sends the time that is left in the caller's deadline scope with each request of a client. A
/// request for which no time is left fails with [`NoTimeLeft`], and is not sent. The response's
/// future has the caller's deadline in whichever task awaits it.
#[derive(Clone, Debug)]
pub struct SendDeadlineLayer(DeadlineHeader);

impl SendDeadlineLayer {
    /// Writes `header`.
    pub fn new(header: DeadlineHeader) -> SendDeadlineLayer {
        SendDeadlineLayer(header)
    }
}

impl<S> Layer<S> for SendDeadlineLayer {
    type Service = SendDeadline<S>;

    fn layer(&self, inner: S) -> SendDeadline<S> {
        SendDeadline { inner, header: self.0.clone() }
    }
}

/// A client that sends the caller's deadline; from [`SendDeadlineLayer`].
#[derive(Clone, Debug)]
pub struct SendDeadline<S> {
    inner: S,
    header: DeadlineHeader,
}

impl<S, B> Service<Request<B>> for SendDeadline<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> DeadlineFuture<S::Future> {
        let written = self.header.write(request.headers_mut());
        let call = written.ok().map(|()| propagate_deadline(self.inner.call(request)));
        DeadlineFuture { call }
    }
}

pin_project! {
    /// The response, or [`tickless::future::Elapsed`], or [`NoTimeLeft`].
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct DeadlineFuture<F> {
        // `None` if no time is left.
        #[pin]
        call: Option<DeadlineScope<F>>,
    }
}

impl<F, T, E> Future for DeadlineFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, BoxError>> {
        match self.project().call.as_pin_mut() {
            Some(call) => call.poll(cx).map(|ended| ended?.map_err(Into::into)),
            None => Poll::Ready(Err(NoTimeLeft.into())),
        }
    }
}
