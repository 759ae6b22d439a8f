//! Tickless timers for hyper 1.
//!
//! ```
//! use std::time::Duration;
//! use hyper::server::conn::http1;
//! use tickless_hyper::TicklessTimer;
//!
//! let timer = TicklessTimer::of_process()?;
//! let mut server = http1::Builder::new();
//! server.timer(timer).header_read_timeout(Duration::from_secs(10));
//! # Ok::<(), tickless::driver::StartTimersError>(())
//! ```
//!
//! [`TicklessTimer`] is a [`hyper::rt::Timer`]: pass it wherever hyper or hyper-util takes a timer
//! (`Builder::timer`, `pool_timer`). It works in any runtime. A timer made from a
//! [`VirtualTime`](tickless::VirtualTime) tests timeouts of minutes in milliseconds. Pushing out a
//! keep-alive does not allocate.
//!
//! [`DeadlineHeader`] carries the deadline of a request: a service runs its work in
//! [`DeadlineHeader::scope`], and a client calls [`DeadlineHeader::write`] before it sends.
//!
//! If a program depends on another, incompatible version of hyper, passing a `TicklessTimer` to it
//! is a compile error. `cargo tree -i hyper` shows which crate requires which version.

use hyper::rt::{Sleep, Timer};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tickless::driver::StartTimersError;
use tickless::future::TimerSource;
use tickless::time;

pub use tickless_http::{DeadlineHeader, NoTimeLeft};

/// A timer for hyper. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TicklessTimer {
    timers: TimerSource,
}

impl TicklessTimer {
    /// Uses the timers of the process. Returns an error if the system refuses their threads.
    pub fn of_process() -> Result<TicklessTimer, StartTimersError> {
        TimerSource::process().map(TicklessTimer::new)
    }

    /// Uses the given timers: `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(timers: impl Into<TimerSource>) -> TicklessTimer {
        TicklessTimer { timers: timers.into() }
    }
}

pin_project! {
    #[derive(Debug)]
    struct HyperSleep {
        #[pin]
        inner: tickless::future::Sleep,
    }
}

impl Future for HyperSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll(cx)
    }
}

impl Sleep for HyperSleep {}

impl Timer for TicklessTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep { inner: self.timers.sleep(duration) })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep { inner: self.timers.sleep_until(time::from_std(deadline)) })
    }

    fn now(&self) -> Instant {
        self.timers.std_now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            Some(sleep) => sleep.project().inner.reset_at(time::from_std(new_deadline)),
            // A sleep of another `hyper::rt::Timer` is replaced.
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
