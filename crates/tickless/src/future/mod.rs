//! Timers as futures, for any async runtime or none.
//!
//! ```
//! use std::time::Duration;
//! use tickless::future::{deadline, interval, sleep};
//!
//! # fn main() { pollster::block_on(async {
//! sleep(Duration::from_millis(1)).await;
//!
//! let late = deadline(Duration::from_millis(5), std::future::pending::<()>()).await;
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
//! what waking the driver's thread and then the task's takes. [`Deadline`] and [`CoarseSleep`] are
//! on the timer wheel: as cheap to push out as anything can be, and late by up to 13 % of
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

mod deadline;
mod interval;
mod sleep;
mod source;
#[cfg(feature = "stream")]
mod stream;

pub use deadline::{Deadline, Elapsed};
pub use interval::{Interval, Tick};
pub use sleep::{CoarseSleep, Sleep};
pub use source::TimerSource;

use crate::Timers;
use crate::host::entry::From;
use crate::host::{clock, process};
use std::time::Duration;
use tickless_core::time::Ns;

/// Completes `after` the present.
pub fn sleep(after: Duration) -> Sleep {
    Sleep::new(From::Process(process::handle()), now() + after, default_slack(after))
}

/// Completes at a point in time: one that [`now`] says, or later.
pub fn sleep_until(deadline: Ns) -> Sleep {
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
    Interval::new(From::Process(process::handle()), first, period)
}

/// `future`'s output, or [`Elapsed`] if that takes longer than `after`; noticed up to 13 % of that
/// later.
pub fn deadline<F: Future>(after: Duration, future: F) -> Deadline<F> {
    Deadline::new(coarse_sleep(after), future)
}

/// The present, on the clock of the process's timers.
pub fn now() -> Ns {
    process::timers().map_or_else(clock::system_now, Timers::now)
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
    /// A future that completes `after` the present; see [`future`](crate::future).
    pub fn sleep(&self, after: Duration) -> Sleep {
        Sleep::new(From::Timers(&self.shared), self.now() + after, default_slack(after))
    }

    /// A future that completes at a point in time.
    pub fn sleep_until(&self, deadline: Ns) -> Sleep {
        let after = deadline - self.now();
        Sleep::new(From::Timers(&self.shared), deadline, default_slack(after))
    }

    /// A future that completes `after` the present, or up to 13 % of that later; cheap to push out.
    pub fn coarse_sleep(&self, after: Duration) -> CoarseSleep {
        CoarseSleep::new(From::Timers(&self.shared), self.now() + after)
    }

    /// Ticks every `period`, first a period from now. A period of zero counts as a nanosecond.
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(From::Timers(&self.shared), self.now() + period, period)
    }

    /// `future`'s output, or [`Elapsed`] if that takes longer than `after`; noticed up to
    /// 13 % of that later.
    pub fn deadline<F: Future>(&self, after: Duration, future: F) -> Deadline<F> {
        Deadline::new(self.coarse_sleep(after), future)
    }
}
