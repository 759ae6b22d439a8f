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
//! The futures need no runtime: a driver thread of [`Timers`] wakes the task, on any executor. The
//! functions of this module use the timers of the process, which start when the first future is
//! polled. [`Timers::sleep`], [`Timers::timeout_after`] and the other methods of [`Timers`] use
//! timers that the program started, or those of a [`VirtualTime`](crate::VirtualTime). Where the
//! program moves the caller's clock, the functions of this module follow it, as
//! [`Timers::process`] does: in a tokio runtime whose clock was paused, or on a virtual clock that
//! the thread has entered. What was created before that stays on its own clock.
//!
//! # Cost
//!
//! A future contains its timer, so it allocates nothing. Arming locks the base of the current CPU,
//! and no other lock. It makes a system call only if the deadline is earlier than the one for which
//! the driver sleeps. [`Sleep`] is 96 bytes. Dropping a future cancels it.
//!
//! # Accuracy
//!
//! No future completes early. [`Sleep`] and [`Interval`] are late by two thread wakeups, the
//! driver's and the task's, and by their slack, which lets expiries share a wakeup: a thousandth of
//! the time to sleep by default, at most 50 ms. [`coarse_timeout`] and [`CoarseSleep`] use a timer
//! wheel: moving their deadline to a later time ("pushing out") costs one compare-and-swap, and
//! they are late by up to 13 % of the time to sleep.
//!
//! # Deadlines
//!
//! [`deadline_scope`] gives everything that a future does a deadline: [`timeout`]s inside of it end
//! with it, [`remaining`] returns the time that is left, and [`propagate_deadline`] passes it to a
//! spawned task.
//!
//! # Corner cases
//!
//! - A future that has completed is ready again whenever it is polled.
//! - A duration counts from the call that creates the future. The first poll arms the timer.
//! - A leaked future (`mem::forget`) keeps its memory and its timers' drivers alive.
//! - A future can move from one runtime to another: its timer wakes the task that polled it last.
//! - In the child of a fork, futures of the parent never become ready. New futures do.
//! - If the system refuses threads for the timers of the process, each poll reads the clock and
//!   wakes its task immediately: the future completes in time, but keeps a CPU busy.

mod deadline;
mod interval;
mod labelled;
mod sleep;
mod source;
mod timeout;

pub use deadline::{DeadlineScope, deadline_scope, propagate_deadline, remaining};
pub use interval::{Interval, Tick};
pub use sleep::{CoarseSleep, Sleep};
pub use source::{TimerSource, now};
pub use timeout::{Elapsed, Timeout};

#[cfg(doc)]
use crate::timers::Timers;
use labelled::Labelled;
use source::make;
use std::time::Duration;
use tickless_core::time::Instant;

/// Returns a future that completes when `after` has passed.
pub fn sleep(after: Duration) -> Sleep {
    make(|(timers, now, slack)| Sleep::new(timers, now + after, slack(after)))
}

/// Returns a future that completes at `deadline`, a time on the clock of [`now`]. If `deadline` has
/// passed, the future is ready when first polled.
pub fn sleep_until(deadline: Instant) -> Sleep {
    make(|(timers, now, slack)| Sleep::new(timers, deadline, slack(deadline - now)))
}

/// Returns a future that completes when `after` has passed, or later by up to 13 % of `after`: for
/// idle timeouts, which are often moved to a later time and seldom fire.
pub fn coarse_sleep(after: Duration) -> CoarseSleep {
    make(|(timers, now, _)| CoarseSleep::new(timers, now + after))
}

/// Returns an interval that ticks every `period`, starting one period from now. A period of zero
/// counts as one nanosecond.
pub fn interval(period: Duration) -> Interval {
    make(|(timers, now, slack)| Interval::new(timers, now + period, period, slack(period)))
}

/// Yields `future`'s output, or [`Elapsed`] if `future` is not ready before `after` has passed. As
/// accurate as [`sleep`].
pub fn timeout<F: Future>(after: Duration, future: F) -> Timeout<F> {
    Timeout::new(sleep(after), future)
}

/// Like [`timeout`], but on the timer wheel: `Elapsed` is returned up to 13 % of `after` late, and
/// moving the deadline to a later time is cheap. For an idle timeout, put one around each read. To
/// move the deadline of a pending one, pin it and call `reset` of the [`Timeout`]:
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
pub fn coarse_timeout<F: Future>(after: Duration, future: F) -> Timeout<F, CoarseSleep> {
    Timeout::new(coarse_sleep(after), future)
}

/// Labels all timers that `future` arms while it is polled. [`timer_list`](Timers::timer_list) and
/// [`leaks`](Timers::leaks) show the label. To store the label, each arming takes a lock that all
/// timers of the set share.
pub fn labelled<F: Future>(label: &'static str, future: F) -> impl Future<Output = F::Output> {
    Labelled::new(label, future)
}
