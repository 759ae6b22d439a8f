//! Tickless timers for the AWS SDK and other clients made by smithy.
//!
//! ```
//! use aws_smithy_async::rt::sleep::SharedAsyncSleep;
//! use tickless_smithy::TicklessSleep;
//!
//! let sleep = SharedAsyncSleep::new(TicklessSleep::of_process()?);
//! // aws_config::defaults(..).sleep_impl(sleep)
//! # Ok::<(), tickless::driver::StartTimersError>(())
//! ```
//!
//! [`TicklessSleep`] is an `AsyncSleep`: the SDK's timeouts and the backoff of its retries wait on
//! it, in any runtime. [`VirtualTimeSource`] is a `TimeSource` for tests: with both on one
//! [`VirtualTime`], an hour of retries takes no time, and the test decides when credentials expire.

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tickless::VirtualTime;
use tickless::clock::TimeBase;
use tickless::driver::StartTimersError;
use tickless::future::TimerSource;
use tickless::time::Instant;

/// Makes the SDK's sleeps. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TicklessSleep {
    timers: TimerSource,
}

impl TicklessSleep {
    /// Uses the timers of the process. Returns an error if the system refuses their threads.
    pub fn of_process() -> Result<TicklessSleep, StartTimersError> {
        TimerSource::process().map(TicklessSleep::new)
    }

    /// Uses the given timers: `&Timers`, `&VirtualTime` or a [`TimerSource`].
    pub fn new(timers: impl Into<TimerSource>) -> TicklessSleep {
        TicklessSleep { timers: timers.into() }
    }
}

impl AsyncSleep for TicklessSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.timers.sleep(duration))
    }
}

/// The wall-clock time of a [`VirtualTime`].
#[derive(Clone, Debug)]
pub struct VirtualTimeSource {
    time: VirtualTime,
}

impl VirtualTimeSource {
    /// Returns a source of the wall-clock time of `time`.
    pub fn new(time: &VirtualTime) -> VirtualTimeSource {
        VirtualTimeSource { time: time.clone() }
    }
}

impl TimeSource for VirtualTimeSource {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + (self.time.now_on(TimeBase::Realtime) - Instant::ZERO)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
