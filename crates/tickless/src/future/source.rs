//! Which timers a library or an adapter takes its futures from.

use super::{CoarseSleep, Interval, Sleep};
use crate::builder::StartTimersError;
use crate::time;
use crate::timers::Timers;
use crate::virtual_time::VirtualTime;
use std::fmt;
use std::time::Duration;
use tickless_core::time::Instant;

/// Where futures come from: the timers of the process, or some of the program's own, those of a
/// [`VirtualTime`] for instance. For libraries that are handed the choice; cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use tickless::future::TimerSource;
///
/// async fn poll_twice(timers: &TimerSource) {
///     timers.sleep(Duration::from_secs(60)).await;
///     timers.sleep(Duration::from_secs(60)).await;
/// }
///
/// let time = tickless::VirtualTime::new();
/// time.block_on(poll_twice(&TimerSource::from(&time))); // two minutes, in no time
/// # Ok::<(), tickless::driver::StartTimersError>(())
/// ```
#[derive(Clone)]
pub struct TimerSource {
    /// `None` for those of the process, whose futures count no handles.
    own: Option<Timers>,
}

impl TimerSource {
    /// The timers of the process, which start now if they have not been used before. An error if
    /// the system refuses their threads.
    ///
    /// # Errors
    ///
    /// [`StartTimersError`] if the system refuses the threads of the process's timers.
    pub fn process() -> Result<TimerSource, StartTimersError> {
        match super::timers() {
            Some(_) => Ok(TimerSource { own: None }),
            // Asks once more, to learn why.
            None => Timers::start().map(TimerSource::from),
        }
    }

    /// The present, on the clock that deadlines are on.
    pub fn now(&self) -> Instant {
        self.own.as_ref().map_or_else(super::now, Timers::now)
    }

    /// The present as [`std::time::Instant`]. Under virtual time it is as virtual as
    /// [`now`](TimerSource::now).
    pub fn std_now(&self) -> std::time::Instant {
        time::to_std(self.now())
    }

    /// A future that completes `after` the present; see [`sleep`](super::sleep).
    pub fn sleep(&self, after: Duration) -> Sleep {
        match &self.own {
            Some(timers) => timers.sleep(after),
            None => super::sleep(after),
        }
    }

    /// A future that completes at a point in time.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        match &self.own {
            Some(timers) => timers.sleep_until(deadline),
            None => super::sleep_until(deadline),
        }
    }

    /// A future that completes `after` the present, or up to 13 % of that later; cheap to push out.
    pub fn coarse_sleep(&self, after: Duration) -> CoarseSleep {
        match &self.own {
            Some(timers) => timers.coarse_sleep(after),
            None => super::coarse_sleep(after),
        }
    }

    /// Ticks every `period`, first a period from now.
    pub fn interval(&self, period: Duration) -> Interval {
        match &self.own {
            Some(timers) => timers.interval(period),
            None => super::interval(period),
        }
    }

    /// The timers themselves, for their statistics and for callbacks. `None` if the system refuses
    /// the threads of the process's timers, which a child of a fork may find out late.
    pub fn timers(&self) -> Option<&Timers> {
        self.own.as_ref().or_else(|| super::timers())
    }
}

impl From<Timers> for TimerSource {
    fn from(timers: Timers) -> TimerSource {
        TimerSource { own: Some(timers) }
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

impl fmt::Debug for TimerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.own.is_some() { "TimerSource::Own" } else { "TimerSource::Process" })
    }
}
