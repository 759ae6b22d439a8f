//! Timers as futures, for any async runtime or none.
//!
//! ```
//! use std::time::Duration;
//! use tickless::future::{interval, sleep, timeout};
//!
//! # fn main() { pollster::block_on(async {
//! sleep(Duration::from_millis(1)).await;
//!
//! let late = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
//! assert!(late.is_err());
//!
//! let mut ticks = interval(Duration::from_millis(2));
//! for _ in 0..3 {
//!     let tick = ticks.tick().await;
//!     assert_eq!(tick.overruns, tick.overruns); // how many ticks were missed before this one
//! }
//! # }) }
//! ```
//!
//! They need no runtime: a driver thread of [`Timers`] wakes the task, whichever
//! executor it runs on. The functions of this module use timers of the process, which start with
//! the first future that is polled; [`Timers::sleep`](crate::Timers::sleep) and its like use
//! others, [`VirtualTime`](crate::VirtualTime) for instance.
//!
//! # What they cost
//!
//! A future contains its timer: nothing is allocated, no system call is made unless the deadline
//! comes before everything that a sleeping driver waits for, and the only lock is that of the
//! CPU's base. [`Sleep`] has 96 bytes. Dropping a future cancels it.
//!
//! # How exact they are
//!
//! Never early. [`Sleep`] and [`Interval`] are as exact as waking a thread allows; their slack,
//! by which they may be late to share a wakeup, is a thousandth of the time to sleep, at most
//! 50 ms, unless set otherwise: none for 1 ms, 1 ms for a second. So a sleep of 1 ms is late by
//! what waking the driver's thread and then the task's takes. [`CoarseTimeout`] and [`CoarseSleep`]
//! are on the timer wheel: as cheap to push out as anything can be, and late by up to 13 % of
//! their distance.
//!
//! # Corner cases
//!
//! - A future that has completed is ready again whenever it is polled.
//! - A deadline is counted from when the future is made, not from when it is first polled; before
//!   that it is not armed and wakes nobody.
//! - One that is forgotten keeps its memory and its timers' drivers, fires once, and wakes a task
//!   that may be gone, which wakers allow. If it was never polled it does not fire.
//! - A runtime that ends drops its tasks, and with them their futures: nothing stays pending.
//! - It may be polled by one runtime first and by another later: the last waker is woken.
//! - A runtime that does not poll for a while finds the future ready afterwards.
//! - In the child of a fork, futures of the parent never become ready. New ones do.
//! - Should the system refuse the threads for the timers of the process, futures look at the
//!   clock whenever they are polled and ask to be polled again: right, and busy.

mod interval;
mod labelled;
mod sleep;
mod source;
#[cfg(feature = "stream")]
mod stream;
mod timeout;

pub use interval::{Interval, Tick};
pub use labelled::Labelled;
pub use sleep::{CoarseSleep, Sleep};
pub use source::TimerSource;
pub use timeout::{CoarseTimeout, Elapsed, Timeout};

use crate::platform::system_clock::system_now;
use crate::process;
use crate::timer::entry::From;
use crate::timers::Timers;
use std::time::Duration;
use tickless_core::time::{Instant, Ns};

/// Completes `after` the present.
pub fn sleep(after: Duration) -> Sleep {
    Sleep::new(From::Process(process::handle()), now() + after, default_slack(after))
}

/// Completes at a point in time: one that [`now`] says, or later.
pub fn sleep_until(deadline: Instant) -> Sleep {
    let after = deadline - now();
    Sleep::new(From::Process(process::handle()), deadline, default_slack(after))
}

/// Completes `after` the present, or up to 13 % of that later: for idle timeouts, which are pushed
/// out all the time and seldom fire.
pub fn coarse_sleep(after: Duration) -> CoarseSleep {
    CoarseSleep::new(From::Process(process::handle()), now() + after)
}

/// Ticks every `period`, first a period from now. A period of zero counts as a nanosecond.
pub fn interval(period: Duration) -> Interval {
    let first = now() + period;
    Interval::new(From::Process(process::handle()), first, period, default_slack(period))
}

/// `future`'s output, or [`Elapsed`] if that takes longer than `after`. As exact as [`sleep`].
pub fn timeout<F: Future>(after: Duration, future: F) -> Timeout<F> {
    Timeout::new(sleep(after), future)
}

/// `future`'s output, or [`Elapsed`] if that takes longer than `after`, noticed up to 13 % of that
/// later: for timeouts that seldom come about. Cheaper than [`timeout`], above all to push out.
pub fn coarse_timeout<F: Future>(after: Duration, future: F) -> CoarseTimeout<F> {
    CoarseTimeout::new(coarse_sleep(after), future)
}

/// `future`, with a label for all timers that it arms while it is polled: for
/// [`timer_list`](Timers::timer_list) and [`leaks`](Timers::leaks). Each arming takes a lock that
/// all timers of the set share.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::future::labelled;
///
/// let time = VirtualTime::new();
/// let sleep = time.timers().sleep(Duration::from_secs(1));
/// let mut retry = Box::pin(labelled("retry", sleep));
/// # use std::task::{Context, Waker};
/// # use std::future::Future;
/// let _ = retry.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// assert_eq!(time.timers().leaks().leaks[0].label, "retry");
/// ```
pub fn labelled<F: Future>(label: &'static str, future: F) -> Labelled<F> {
    Labelled::new(label, future)
}

/// The present, on the clock of the process's timers.
pub fn now() -> Instant {
    process::timers().map_or_else(|| system_now().into(), Timers::now)
}

/// The timers that the functions of this module use, for their [statistics](Timers::stats) and the
/// like. Starts them, if no future has been made yet; `None` if the system refuses their threads.
pub fn timers() -> Option<&'static Timers> {
    process::timers()
}

fn default_slack(after: Duration) -> Ns {
    Ns(Ns::from_duration(after).0 / 1_000).min(Ns::from_ms(50))
}

impl Timers {
    /// By how much a sleep may be late to share a wakeup; in virtual time it is exact.
    fn default_slack(&self, after: Duration) -> Ns {
        if self.shared.is_virtual() { Ns::ZERO } else { default_slack(after) }
    }

    /// A future that completes `after` the present; see [`future`](crate::future).
    pub fn sleep(&self, after: Duration) -> Sleep {
        Sleep::new(From::Timers(&self.shared), self.now() + after, self.default_slack(after))
    }

    /// A future that completes at a point in time.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let after = deadline - self.now();
        Sleep::new(From::Timers(&self.shared), deadline, self.default_slack(after))
    }

    /// A future that completes `after` the present, or up to 13 % of that later; cheap to push out.
    pub fn coarse_sleep(&self, after: Duration) -> CoarseSleep {
        CoarseSleep::new(From::Timers(&self.shared), self.now() + after)
    }

    /// Ticks every `period`, first a period from now. A period of zero counts as a nanosecond.
    pub fn interval(&self, period: Duration) -> Interval {
        let slack = self.default_slack(period);
        Interval::new(From::Timers(&self.shared), self.now() + period, period, slack)
    }

    /// `future`'s output, or [`Elapsed`](crate::future::Elapsed) if that takes longer than `after`;
    /// see [`future::timeout`](crate::future::timeout).
    pub fn timeout_after<F: Future>(&self, after: Duration, future: F) -> Timeout<F> {
        Timeout::new(self.sleep(after), future)
    }

    /// The same, noticed up to 13 % of that later; see
    /// [`future::coarse_timeout`](crate::future::coarse_timeout).
    pub fn coarse_timeout_after<F: Future>(&self, after: Duration, future: F) -> CoarseTimeout<F> {
        CoarseTimeout::new(self.coarse_sleep(after), future)
    }
}
