//! Lets the caller of a library choose the timers behind the library's futures.

use super::clock_sleep::{ClockSleep, Until};
use super::{CoarseSleep, DeadlineScope, Interval, Sleep, Timeout};
use crate::builder::StartTimersError;
use crate::platform::time_base::TimeBase;
use crate::process;
use crate::time;
use crate::timer::entry::Entry;
use crate::timer::glue::Host;
use crate::timer::shared::{Handle, default_slack};
use crate::timers::Timers;
#[cfg(feature = "tokio-time")]
use crate::tokio_runtime::{self, Current, current, moved};
use crate::virtual_time::VirtualTime;
use std::pin::Pin;
use std::time::Duration;
use tickless_core::bases::Family;
use tickless_core::time::{Instant, Ns};

/// The timers from which a library creates its futures: those of the process, timers that the
/// program started, those of a [`VirtualTime`], or those of the tokio runtime that the caller is in
/// (`tokio_time::timers`). For libraries that let their callers choose the timers. Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use tickless::future::TimerSource;
///
/// async fn poll_twice(timers: &TimerSource) -> Option<u32> {
///     timers.sleep(Duration::from_secs(60)).await;
///     let answer = timers.timeout_after(Duration::from_secs(60), std::future::pending());
///     answer.await.ok()
/// }
///
/// let time = tickless::VirtualTime::new();
/// let answer = time.block_on(poll_twice(&TimerSource::from(&time))); // two minutes, in no time
/// assert_eq!(answer, None);
/// # Ok::<(), tickless::driver::StartTimersError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TimerSource {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// The timers of the process. They never end, so futures need no counted references to them.
    Process,
    Own(Timers),
    /// The timers of the context in which each future is created: a virtual clock, a tokio runtime,
    /// or the process.
    #[cfg(feature = "tokio-time")]
    Context,
}

impl TimerSource {
    /// Uses the timers of the process. Starts them if they are not running yet.
    ///
    /// # Errors
    ///
    /// [`StartTimersError`] if the system refuses the threads of the process's timers.
    pub fn process() -> Result<TimerSource, StartTimersError> {
        Timers::process().map(|_| TimerSource { source: Source::Process })
    }

    /// Uses the timers of the context in which each future is created; see `tokio_time::timers`.
    #[cfg(feature = "tokio-time")]
    pub(crate) fn of_context() -> TimerSource {
        TimerSource { source: Source::Context }
    }

    /// Returns the current time on the clock that the deadlines of the futures are on.
    pub fn now(&self) -> Instant {
        match &self.source {
            Source::Process => now(),
            Source::Own(timers) => timers.now(),
            #[cfg(feature = "tokio-time")]
            Source::Context => tokio_runtime::now(),
        }
    }

    /// Returns [`now`](TimerSource::now) as a [`std::time::Instant`]; on a virtual clock this is
    /// the virtual time.
    pub fn std_now(&self) -> std::time::Instant {
        time::to_std(self.now())
    }

    /// Returns the timers, to read their statistics, or to create limiters and timers with
    /// callbacks on the clock of the futures. In a tokio runtime whose clock runs with real time
    /// these are the timers of the process, whose callbacks do not delay the runtime;
    /// `tokio_time::stats` has the statistics of the runtime's own. `None` if the system refuses
    /// the threads of the process's timers.
    pub fn timers(&self) -> Option<Timers> {
        match &self.source {
            Source::Own(timers) => Some(timers.clone()),
            _ => Timers::process().ok(),
        }
    }
}

impl Timers {
    /// Returns the timers of this process, which [`future`](crate::future) uses too: a base for
    /// each CPU that the process is allowed to use, each with a driver thread once it is used. The
    /// first call starts them, which blocks for about a millisecond; they run until the process
    /// ends. For a separate set, see [`builder`](Timers::builder).
    ///
    /// Where the program moves the caller's clock, returns timers on that clock instead (feature
    /// `tokio-time`): those of the tokio runtime that the caller is in, if its clock was paused, or
    /// those of the [`VirtualTime`] that the thread has entered. The runtime's timers run their
    /// callbacks on the runtime's thread, and none after its end. For real time in such a test,
    /// start a separate set.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Thread`] if the system refuses a thread.
    #[track_caller]
    pub fn process() -> Result<Timers, StartTimersError> {
        #[cfg(feature = "tokio-time")]
        if let Some(timers) = moved().as_ref().and_then(Current::timers) {
            return Ok(timers.clone());
        }
        process::start().cloned()
    }
}

/// What a future is made from: timers, the current time on their clock, and their default slack.
type Parts<'a> = (Option<&'a Handle>, Instant, &'a dyn Fn(Ns) -> Ns);

/// The timers of the process, or those of the caller's context if the program moves their clock.
pub(super) struct Here {
    #[cfg(feature = "tokio-time")]
    moved: Option<Current>,
}

impl Here {
    #[inline(always)]
    pub(super) fn new() -> Here {
        Here {
            #[cfg(feature = "tokio-time")]
            moved: moved(),
        }
    }

    #[inline(always)]
    pub(super) fn handle(&self) -> Option<&Handle> {
        #[cfg(feature = "tokio-time")]
        if let Some(moved) = &self.moved {
            return moved.handle();
        }
        process::handle()
    }

    #[inline(always)]
    pub(super) fn now(&self) -> Instant {
        #[cfg(feature = "tokio-time")]
        if let Some(moved) = &self.moved {
            return moved.now();
        }
        process::now()
    }

    #[inline(always)]
    pub(super) fn slack(&self, after: Ns) -> Ns {
        #[cfg(feature = "tokio-time")]
        if let Some(moved) = &self.moved {
            return moved.slack(after);
        }
        default_slack(after)
    }
}

/// Returns the time of a call that makes a timeout, if the timeout's timers can be chosen later, by
/// [`place`]: then the call looks up nothing. `None` after the program has moved a clock.
#[inline]
pub(super) fn call_time() -> Option<Instant> {
    #[cfg(feature = "tokio-time")]
    if tokio_runtime::any_moves() {
        return None;
    }
    Some(process::now())
}

/// Chooses the timers of a timeout whose future has to wait: those of the caller's context.
#[inline(never)]
pub(super) fn place<L: Family<Host>>(entry: Pin<&mut Entry<L>>, after: Ns) {
    let here = Here::new();
    let slack = if L::COARSE { Ns::ZERO } else { here.slack(after) };
    entry.place(here.handle(), after, slack);
}

/// Returns the current time on the clock that the futures of this module use: that of the process's
/// timers, or the caller's, if the program moves it.
pub fn now() -> Instant {
    Here::new().now()
}

impl TimerSource {
    /// Calls `make` with what a future needs: a handle, the time, and the default slack.
    fn make<T>(&self, make: impl FnOnce(Parts<'_>) -> T) -> T {
        match &self.source {
            Source::Process => {
                let here = Here::new();
                make((here.handle(), here.now(), &|after| here.slack(after)))
            }
            Source::Own(timers) => timers.make(make),
            #[cfg(feature = "tokio-time")]
            Source::Context => {
                let timers = current();
                make((timers.handle(), timers.now(), &|after| timers.slack(after)))
            }
        }
    }
}

impl Timers {
    #[inline(always)]
    fn make<T>(&self, make: impl FnOnce(Parts<'_>) -> T) -> T {
        let slack = |after| self.shared.default_slack(after);
        make((Some(&self.shared), self.now(), &slack))
    }
}

macro_rules! futures {
    ($type:ident, $timers:expr) => {
        impl $type {
            /// Returns a future that completes when `after` has passed; see
            /// [`future::sleep`](crate::future::sleep).
            pub fn sleep(&self, after: Duration) -> Sleep {
                self.make(|(timers, now, slack)| {
                    Sleep::new(timers, now + after, slack(Ns::from_duration(after)))
                })
            }

            /// Returns a future that completes at `deadline`, a time on the clock of
            /// [`now`](Self::now).
            pub fn sleep_until(&self, deadline: Instant) -> Sleep {
                self.make(|(timers, now, slack)| {
                    Sleep::new(timers, deadline, slack(Ns::from_duration(deadline - now)))
                })
            }

            /// Returns a future that completes when `after` has passed, or later by up to 13 % of
            /// it. Moving the deadline to a later time is cheap: one compare-and-swap.
            pub fn coarse_sleep(&self, after: Duration) -> CoarseSleep {
                self.make(|(timers, now, _)| CoarseSleep::new(timers, now + after))
            }

            /// Returns an interval that ticks every `period`, starting one period from now. A
            /// period of zero counts as one nanosecond.
            pub fn interval(&self, period: Duration) -> Interval {
                self.make(|(timers, now, slack)| {
                    Interval::new(timers, now + period, period, slack(Ns::from_duration(period)))
                })
            }

            /// Yields `future`'s output, or [`Elapsed`](crate::future::Elapsed) if `future` is not
            /// ready before `after` has passed; see [`future::timeout`](crate::future::timeout).
            pub fn timeout_after<F: Future>(&self, after: Duration, future: F) -> Timeout<F> {
                Timeout::new(self.sleep(after), future)
            }

            /// Like [`timeout_after`](Self::timeout_after), but on the timer wheel: cheap to move
            /// to a later time, and up to 13 % late; see
            /// [`future::coarse_timeout`](crate::future::coarse_timeout).
            pub fn coarse_timeout_after<F: Future>(
                &self,
                after: Duration,
                future: F,
            ) -> Timeout<F, CoarseSleep> {
                Timeout::new(self.coarse_sleep(after), future)
            }

            /// Returns a future that completes when `after` has passed by the clock `base`; see
            /// [`future::clock_sleep`](crate::future::clock_sleep).
            pub fn clock_sleep(&self, base: TimeBase, after: Duration) -> ClockSleep {
                ClockSleep::new($timers(self).as_ref(), base, Until::After(after))
            }

            /// Returns a future that completes at `deadline`, a time on the clock `base`; see
            /// [`future::clock_sleep_until`](crate::future::clock_sleep_until).
            pub fn clock_sleep_until(&self, base: TimeBase, deadline: Instant) -> ClockSleep {
                ClockSleep::new($timers(self).as_ref(), base, Until::At(deadline))
            }

            /// Runs `future` with the ambient deadline `at`, a time on the clock of
            /// [`now`](Self::now); see [`future::deadline_scope`](crate::future::deadline_scope).
            pub fn deadline_scope<F: Future>(&self, at: Instant, future: F) -> DeadlineScope<F> {
                DeadlineScope::new(self.sleep_until(at), future)
            }
        }
    };
}

futures!(Timers, |timers: &Timers| Some(timers.clone()));
futures!(TimerSource, TimerSource::timers);

impl From<Timers> for TimerSource {
    fn from(timers: Timers) -> TimerSource {
        TimerSource { source: Source::Own(timers) }
    }
}

impl From<&Timers> for TimerSource {
    fn from(timers: &Timers) -> TimerSource {
        TimerSource::from(timers.clone())
    }
}

impl From<&VirtualTime> for TimerSource {
    fn from(time: &VirtualTime) -> TimerSource {
        TimerSource::from(time.timers())
    }
}

impl From<&TimerSource> for TimerSource {
    fn from(source: &TimerSource) -> TimerSource {
        source.clone()
    }
}
