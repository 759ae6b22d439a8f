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
//! # Other clocks
//!
//! [`clock_sleep`] and [`clock_timeout`] count the time of a suspend, on boottime;
//! [`clock_sleep_until`] and [`clock_timeout_at`] end at a time of the wall clock, also when that
//! is set. For callbacks there is [`ClockTimer`](crate::clock::ClockTimer).
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
//! - A duration counts from the call that creates the future, also if its first poll takes long.
//!   The first poll arms the timer.
//! - A [`timeout`] whose future is ready at once reads the clock, and touches nothing else. Its
//!   timers are those of the caller's context where its future first has to wait.
//! - With the feature `tokio-time`, a future that is ready takes a unit of its task's budget in a
//!   runtime of tokio's. Without it, a loop over futures that are ready at once lets no other task
//!   of its thread run, on any runtime.
//! - A leaked future (`mem::forget`) keeps its memory and its timers' drivers alive.
//! - A future can move from one runtime to another: its timer wakes the task that polled it last.
//! - In the child of a fork, futures of the parent never become ready. New futures do.
//! - If the system refuses threads for the timers of the process, each poll reads the clock and
//!   wakes its task immediately: the future completes in time, but keeps a CPU busy.

mod clock_sleep;
mod deadline;
mod interval;
mod labelled;
mod sleep;
mod source;
mod timeout;

pub use clock_sleep::ClockSleep;
pub use deadline::{DeadlineScope, deadline_scope, propagate_deadline, remaining};
pub use interval::{Interval, Tick};
pub use sleep::{CoarseSleep, Sleep};
pub use source::{TimerSource, now};
pub use timeout::{Elapsed, Timeout};

use crate::platform::time_base::TimeBase;
use crate::timers::Timers;
use clock_sleep::Until;
use labelled::Labelled;
use source::Here;
use std::time::Duration;
use tickless_core::time::{Instant, Ns};

/// Returns a future that completes when `after` has passed.
pub fn sleep(after: Duration) -> Sleep {
    let here = Here::new();
    Sleep::new(here.handle(), here.now() + after, here.slack(Ns::from_duration(after)))
}

/// Returns a future that completes at `deadline`, a time on the clock of [`now`]. If `deadline` has
/// passed, the future is ready when first polled.
pub fn sleep_until(deadline: Instant) -> Sleep {
    let here = Here::new();
    Sleep::new(here.handle(), deadline, here.slack(Ns::from_duration(deadline - here.now())))
}

/// Returns a future that completes when `after` has passed, or later by up to 13 % of `after`: for
/// idle timeouts, which are often moved to a later time and seldom fire.
pub fn coarse_sleep(after: Duration) -> CoarseSleep {
    let here = Here::new();
    CoarseSleep::new(here.handle(), here.now() + after)
}

/// Returns an interval that ticks every `period`, starting one period from now. A period of zero
/// counts as one nanosecond.
pub fn interval(period: Duration) -> Interval {
    let here = Here::new();
    Interval::new(here.handle(), here.now() + period, period, here.slack(Ns::from_duration(period)))
}

/// Yields `future`'s output, or [`Elapsed`] if `future` is not ready before `after` has passed. As
/// accurate as [`sleep`].
pub fn timeout<F: Future>(after: Duration, future: F) -> Timeout<F> {
    Timeout::<F>::after(after, future, sleep)
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
    Timeout::<F, CoarseSleep>::after(after, future, coarse_sleep)
}

/// Returns a future that completes when `after` has passed, counted by the clock `base`: on
/// boottime a suspend counts, on realtime and monotonic time it does not. Setting the wall clock
/// does not change a duration.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::clock::TimeBase;
/// use tickless::future::TimerSource;
///
/// let (time, hour) = (VirtualTime::new(), Duration::from_secs(3600));
/// let timers = TimerSource::from(&time);
/// let pause = timers.clock_sleep(TimeBase::Realtime, hour);
/// time.set_realtime(time.now_on(TimeBase::Realtime) + 2 * hour);
/// assert!(!pause.is_elapsed());
/// time.advance(hour);
/// assert!(pause.is_elapsed());
/// ```
pub fn clock_sleep(base: TimeBase, after: Duration) -> ClockSleep {
    ClockSleep::new(Timers::process().ok().as_ref(), base, Until::After(after))
}

/// Returns a future that completes at `deadline`, a time on the clock `base`. If that is
/// [`TimeBase::Realtime`], a deadline comes from [`clock::realtime`](crate::clock::realtime), and
/// follows the wall clock when that is set: it comes at once if it has passed, and later if the
/// clock went back.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tickless::clock::{TimeBase, realtime};
/// use tickless::future::clock_sleep_until;
///
/// # pollster::block_on(async {
/// let at = SystemTime::now() + Duration::from_millis(5);
/// clock_sleep_until(TimeBase::Realtime, realtime(at)).await;
/// assert!(SystemTime::now() >= at);
/// # })
/// ```
pub fn clock_sleep_until(base: TimeBase, deadline: Instant) -> ClockSleep {
    ClockSleep::new(Timers::process().ok().as_ref(), base, Until::At(deadline))
}

/// Yields `future`'s output, or [`Elapsed`] if it is not ready when `after` has passed by the clock
/// `base`; see [`clock_sleep`]. A [`deadline_scope`] around it ends itself at its own deadline.
pub fn clock_timeout<F: Future>(
    base: TimeBase,
    after: Duration,
    future: F,
) -> Timeout<F, ClockSleep> {
    Timeout::new(clock_sleep(base, after), future)
}

/// Yields `future`'s output, or [`Elapsed`] if it is not ready at `deadline`, a time on the clock
/// `base`; see [`clock_sleep_until`].
pub fn clock_timeout_at<F: Future>(
    base: TimeBase,
    deadline: Instant,
    future: F,
) -> Timeout<F, ClockSleep> {
    Timeout::new(clock_sleep_until(base, deadline), future)
}

/// Labels all timers that `future` arms while it is polled. [`timer_list`](Timers::timer_list) and
/// [`leaks`](Timers::leaks) show the label. To store the label, each arming takes a lock that all
/// timers of the set share.
pub fn labelled<F: Future>(label: &'static str, future: F) -> impl Future<Output = F::Output> {
    Labelled::new(label, future)
}
