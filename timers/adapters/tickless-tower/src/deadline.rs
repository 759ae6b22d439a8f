//! The deadline of a request, from and to its headers.

use http::Request;
use pin_project_lite::pin_project;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tickless::future::{DeadlineScope, TimerSource, propagate_deadline};
use tickless_http::{DeadlineHeader, NoTimeLeft};
use tower::{BoxError, Layer, Service};

/// Carries deadlines of requests in a header: into the
/// [`deadline_scope`](tickless::future::deadline_scope) of a server's request, or from the scope of
/// a client's caller.
#[derive(Clone, Debug)]
pub struct DeadlineLayer {
    header: DeadlineHeader,
    /// The timers of a server's scopes; `None` for a client.
    timers: Option<TimerSource>,
}

impl DeadlineLayer {
    /// For a server: a request that misses the deadline in its header fails with
    /// [`tickless::future::Elapsed`]. `timers` are `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn receive(timers: impl Into<TimerSource>, header: DeadlineHeader) -> DeadlineLayer {
        DeadlineLayer { header, timers: Some(timers.into()) }
    }

    /// For a client: sends the time that is left with each request. A request for which none is
    /// left is not sent, and fails with [`NoTimeLeft`]. The response's future has the caller's
    /// deadline in whichever task awaits it.
    pub fn send(header: DeadlineHeader) -> DeadlineLayer {
        DeadlineLayer { header, timers: None }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, layer: self.clone() }
    }
}

/// A service or client whose requests have a deadline in a header; from [`DeadlineLayer`].
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

    fn call(&mut self, mut request: Request<B>) -> DeadlineFuture<S::Future> {
        let DeadlineLayer { header, timers } = &self.layer;
        let Some(timers) = timers else {
            let written = header.write(request.headers_mut());
            let call = written.ok().map(|()| propagate_deadline(self.inner.call(request)));
            return DeadlineFuture { call };
        };
        let at = header.deadline(timers, request.headers());
        // The inner service is called inside of the scope, too: it may read the deadline.
        let mut request = Some(request);
        let call = poll_fn(|_| Poll::Ready(request.take().map(|request| self.inner.call(request))));
        let call = pin!(timers.deadline_scope(at, call));
        let Poll::Ready(Ok(Some(response))) = call.poll(&mut Context::from_waker(Waker::noop()))
        else {
            unreachable!("the future is ready when it is first polled")
        };
        DeadlineFuture { call: Some(timers.deadline_scope(at, response)) }
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
