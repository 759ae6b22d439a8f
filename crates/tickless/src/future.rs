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
//!     println!("{} ticks were missed before this one", tick.overruns);
//! }
//! # }) }
//! ```
//!
//! The futures need no runtime: a driver thread of [`Timers`] wakes the task, whichever executor
//! runs it. The functions of this module use the timers of the process, which start when the first
//! future is polled. [`Timers::sleep`], [`Timers::timeout_after`] and the like use timers that you
//! started, or those of a [`VirtualTime`](crate::VirtualTime).
//!
//! # What they cost
//!
//! A future contains its timer, so it allocates nothing. Arming takes the lock of the CPU's base
//! and no other. It makes a system call only if the deadline comes before everything that a
//! sleeping driver waits for. [`Sleep`] is 96 bytes. Dropping a future cancels it.
//!
//! # How exact they are
//!
//! No future is early. [`Sleep`] and [`Interval`] are late by two thread wakeups, the driver's and
//! the task's, and by their slack: the time by which they may be late to share a wakeup. Unless
//! set, it is a thousandth of the time to sleep, and at most 50 ms: 1 ms for a second, and
//! negligible for 1 ms. [`CoarseTimeout`] and [`CoarseSleep`] are on the timer wheel: they cost one
//! compare-and-swap to push out, and are late by up to 13 % of their distance.
//!
//! # Corner cases
//!
//! - A future that has completed is ready again whenever it is polled.
//! - A deadline counts from the call that makes the future, not from the first poll. The first poll
//!   arms the timer.
//! - A future that is leaked (`mem::forget`) keeps its memory and its timers' drivers, fires once,
//!   and wakes a task that may be gone, which wakers allow. If it was never polled it does not
//!   fire.
//! - A runtime that ends drops its tasks, and with them their futures: nothing stays pending.
//! - A future may move from one runtime to another: the last waker is woken.
//! - A runtime that does not poll for a while finds the future ready afterwards.
//! - In the child of a fork, futures of the parent never become ready. New ones do.
//! - If the system refuses threads for the timers of the process, futures look at the clock
//!   whenever they are polled, and ask to be polled again at once: correct, at the cost of a CPU.

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

/// Completes when `after` has passed.
///
/// ```
/// use std::time::Duration;
/// use tickless::future::sleep;
///
/// # pollster::block_on(async {
/// sleep(Duration::from_micros(250)).await;
/// # })
/// ```
pub fn sleep(after: Duration) -> Sleep {
    Sleep::new(From::Process(process::handle()), now() + after, default_slack(after))
}

/// Completes at `deadline`, a time on the clock of [`now`]; at once if that has passed.
pub fn sleep_until(deadline: Instant) -> Sleep {
    let after = deadline - now();
    Sleep::new(From::Process(process::handle()), deadline, default_slack(after))
}

/// Completes when `after` has passed, or up to 13 % of that later: for idle timeouts, which are
/// pushed out all the time and seldom fire.
pub fn coarse_sleep(after: Duration) -> CoarseSleep {
    CoarseSleep::new(From::Process(process::handle()), now() + after)
}

/// Ticks every `period`, starting one period from now. A period of zero counts as a nanosecond.
pub fn interval(period: Duration) -> Interval {
    let first = now() + period;
    Interval::new(From::Process(process::handle()), first, period, default_slack(period))
}

/// Yields `future`'s output, or [`Elapsed`] if `future` is not ready before `after` has passed. As
/// exact as [`sleep`].
///
/// ```
/// use std::time::Duration;
/// use tickless::future::timeout;
///
/// # pollster::block_on(async {
/// assert_eq!(timeout(Duration::from_secs(5), async { 42 }).await, Ok(42));
/// assert!(timeout(Duration::from_millis(5), std::future::pending::<()>()).await.is_err());
/// # })
/// ```
pub fn timeout<F: Future>(after: Duration, future: F) -> Timeout<F> {
    Timeout::new(sleep(after), future)
}

/// Yields `future`'s output, or [`Elapsed`] if `future` is not ready before `after` has passed. It
/// may notice that up to 13 % of `after` late. For timeouts that seldom fire: cheaper than
/// [`timeout`], above all to push out.
///
/// An idle timeout is one of these around each read. To push out one that is pending, pin it and
/// call [`reset`](CoarseTimeout::reset):
///
/// ```
/// use std::pin::pin;
/// use std::time::Duration;
/// use tickless::future::{coarse_timeout, sleep};
///
/// # pollster::block_on(async {
/// let work = sleep(Duration::from_millis(30));
/// let mut work = pin!(coarse_timeout(Duration::from_millis(10), work));
/// work.as_mut().reset(Duration::from_secs(30));
/// assert!(work.await.is_ok());
/// # })
/// ```
pub fn coarse_timeout<F: Future>(after: Duration, future: F) -> CoarseTimeout<F> {
    CoarseTimeout::new(coarse_sleep(after), future)
}

/// Labels all timers that `future` arms while it is polled: for [`timer_list`](Timers::timer_list)
/// and [`leaks`](Timers::leaks). Each arming takes a lock that all timers of the set share.
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

/// The time on the clock of the process's timers.
pub fn now() -> Instant {
    process::timers().map_or_else(|| system_now().into(), Timers::now)
}

/// The timers that the functions of this module use, for [statistics](Timers::stats) and the like.
/// Starts them if they are not running yet; `None` if the system refuses their threads.
pub fn timers() -> Option<&'static Timers> {
    process::timers()
}

fn default_slack(after: Duration) -> Ns {
    Ns(Ns::from_duration(after).0 / 1_000).min(Ns::from_ms(50))
}

impl Timers {
    /// How late a sleep may be to share a wakeup; in virtual time it is exact.
    fn default_slack(&self, after: Duration) -> Ns {
        if self.shared.is_virtual() { Ns::ZERO } else { default_slack(after) }
    }

    /// A future that completes when `after` has passed; see [`future`](crate::future).
    pub fn sleep(&self, after: Duration) -> Sleep {
        Sleep::new(From::Timers(&self.shared), self.now() + after, self.default_slack(after))
    }

    /// A future that completes at `deadline`, a time on the clock of [`now`](Timers::now).
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let after = deadline - self.now();
        Sleep::new(From::Timers(&self.shared), deadline, self.default_slack(after))
    }

    /// A future that completes when `after` has passed, or up to 13 % of that later; cheap to push
    /// out.
    pub fn coarse_sleep(&self, after: Duration) -> CoarseSleep {
        CoarseSleep::new(From::Timers(&self.shared), self.now() + after)
    }

    /// Ticks every `period`, starting one period from now. A period of zero counts as a nanosecond.
    pub fn interval(&self, period: Duration) -> Interval {
        let slack = self.default_slack(period);
        Interval::new(From::Timers(&self.shared), self.now() + period, period, slack)
    }

    /// Yields `future`'s output, or [`Elapsed`](crate::future::Elapsed) if `future` is not ready
    /// before `after` has passed; see [`future::timeout`](crate::future::timeout).
    pub fn timeout_after<F: Future>(&self, after: Duration, future: F) -> Timeout<F> {
        Timeout::new(self.sleep(after), future)
    }

    /// Like [`timeout_after`](Timers::timeout_after), but on the timer wheel: cheap to push out,
    /// and up to 13 % late; see [`future::coarse_timeout`](crate::future::coarse_timeout).
    pub fn coarse_timeout_after<F: Future>(&self, after: Duration, future: F) -> CoarseTimeout<F> {
        CoarseTimeout::new(self.coarse_sleep(after), future)
    }
}
