//! Tickless timers for quinn 0.11.
//!
//! ```no_run
//! use tickless_quinn::TicklessRuntime;
//!
//! # fn socket() -> std::io::Result<std::net::UdpSocket> { unreachable!() }
//! # async fn start() -> Result<quinn::Endpoint, Box<dyn std::error::Error>> {
//! let runtime = std::sync::Arc::new(TicklessRuntime::on_tokio()?);
//! let socket = std::net::UdpSocket::bind("[::]:0")?;
//! Ok(quinn::Endpoint::new(Default::default(), None, socket, runtime)?)
//! # }
//! ```
//!
//! [`TicklessRuntime`] is a [`quinn::Runtime`]: loss detection, pacing, keep-alive and idle
//! timeouts run on Tickless. Another runtime, such as tokio, provides tasks and sockets. Under
//! virtual time (`TicklessRuntime::over` with a [`VirtualTime`](tickless::VirtualTime)), idle
//! timeouts of minutes are tested in milliseconds.

use pin_project_lite::pin_project;
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tickless::future::TimerSource;
use tickless::time;

/// A runtime for quinn: the tasks and sockets of another runtime, with Tickless timers.
#[derive(Debug)]
pub struct TicklessRuntime {
    timers: TimerSource,
    inner: Arc<dyn Runtime>,
}

/// The reason why [`TicklessRuntime::on_tokio`] failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The calling thread is not in a tokio runtime.
    OutsideOfTokio,
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this thread is not in a tokio runtime; create the endpoint inside \
             `Runtime::block_on`, or hold the guard of `Runtime::enter`",
        )
    }
}

impl std::error::Error for RuntimeError {}

impl TicklessRuntime {
    /// Uses tasks, sockets and timers of the tokio runtime that the caller is in. The endpoint may
    /// later be used outside that runtime.
    #[cfg(feature = "tokio")]
    pub fn on_tokio() -> Result<TicklessRuntime, RuntimeError> {
        TicklessRuntime::on_tokio_with(tickless::tokio_time::timers())
    }

    /// Uses tasks and sockets of the tokio runtime that the caller is in, and the given timers:
    /// `&Timers`, `&VirtualTime` or a [`TimerSource`].
    #[cfg(feature = "tokio")]
    pub fn on_tokio_with(timers: impl Into<TimerSource>) -> Result<TicklessRuntime, RuntimeError> {
        let handle = tokio::runtime::Handle::try_current();
        let handle = handle.map_err(|_| RuntimeError::OutsideOfTokio)?;
        Ok(TicklessRuntime::over(Arc::new(OnTokio { handle }), timers))
    }

    /// Uses tasks and sockets of `inner`, and the given timers: `&Timers`, `&VirtualTime` or a
    /// [`TimerSource`].
    pub fn over(inner: Arc<dyn Runtime>, timers: impl Into<TimerSource>) -> TicklessRuntime {
        TicklessRuntime { timers: timers.into(), inner }
    }
}

impl Runtime for TicklessRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(QuinnTimer { inner: self.timers.sleep_until(time::from_std(at)) })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.inner.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.timers.std_now()
    }
}

pin_project! {
    #[derive(Debug)]
    struct QuinnTimer {
        #[pin]
        inner: tickless::future::Sleep,
    }
}

impl AsyncTimer for QuinnTimer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        self.project().inner.reset_at(time::from_std(at));
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self.project().inner, cx)
    }
}

/// A tokio runtime, which each call from quinn enters.
#[cfg(feature = "tokio")]
#[derive(Debug)]
struct OnTokio {
    handle: tokio::runtime::Handle,
}

#[cfg(feature = "tokio")]
impl Runtime for OnTokio {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        let _entered = self.handle.enter();
        quinn::TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.handle.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let _entered = self.handle.enter();
        quinn::TokioRuntime.wrap_udp_socket(socket)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
