//! Periodic timers: expiry = first + N x period, for as long as they run (P1).

use crate::fired::Fired;
use crate::hrtimer::HrTimer;
use crate::{StartError, Timers};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless_core::cancel::Cancel;
use tickless_core::queue::Window;
use tickless_core::time::Ns;

/// What happens to periods that were missed because the system or the callback was late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Missed {
    /// They are skipped, and counted: the next expiry is the first that has not passed. The
    /// phase stays.
    #[default]
    Skip,
    /// Each is made up for at once, one callback after another. The phase stays.
    Burst,
    /// The next expiry is a full period from now. The phase moves.
    Delay,
}

/// A periodic timer with its callback; from [`Timers::periodic`].
///
/// It does not drift: an expiry is computed from the last one's deadline, never from when a
/// callback happened to run.
#[derive(Debug)]
pub struct Periodic {
    timer: HrTimer,
    period: Arc<AtomicU64>,
}

/// One expiry of a periodic timer, as its callback sees it. Everything that a [`Fired`] tells
/// is told here too.
#[derive(Debug)]
pub struct Period<'a, 'b> {
    fired: &'a mut Fired<'b>,
    overruns: u64,
}

/// Why a periodic timer was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeriodError {
    /// A period of zero.
    Zero,
    /// The timer could not be armed.
    Start(StartError),
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeriodError::Zero => f.write_str("a period of zero would never end; use at least 1 ns"),
            PeriodError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PeriodError {}

impl From<StartError> for PeriodError {
    fn from(error: StartError) -> Self {
        PeriodError::Start(error)
    }
}

impl Periodic {
    pub(crate) fn new<F>(timers: &Timers, callback: F) -> Periodic
    where
        F: FnMut(&mut Period<'_, '_>) + Send + 'static,
    {
        Periodic::with_missed(timers, Missed::Skip, callback)
    }

    /// A periodic timer that treats missed periods in a way of your choice.
    pub fn with_missed<F>(timers: &Timers, missed: Missed, mut callback: F) -> Periodic
    where
        F: FnMut(&mut Period<'_, '_>) + Send + 'static,
    {
        let period = Arc::new(AtomicU64::new(1));
        let of_timer = Arc::clone(&period);
        let timer = timers.hrtimer(move |fired| {
            let period = Ns(of_timer.load(Ordering::Relaxed));
            let overruns = fired.next_period(period, missed);
            callback(&mut Period { fired, overruns });
        });
        Periodic { timer, period }
    }

    /// Starts it, or starts it anew: first a period from now, then every period.
    pub fn start(&self, period: Duration) -> Result<(), PeriodError> {
        self.start_range(self.timer.now() + period, period, Duration::ZERO)
    }

    /// Starts it at a point in time; `first` fixes the phase.
    pub fn start_at(&self, first: Ns, period: Duration) -> Result<(), PeriodError> {
        self.start_range(first, period, Duration::ZERO)
    }

    /// Starts it at a point in time, each expiry late by up to `slack` to share wakeups.
    pub fn start_range(
        &self,
        first: Ns,
        period: Duration,
        slack: Duration,
    ) -> Result<(), PeriodError> {
        if period.is_zero() {
            return Err(PeriodError::Zero);
        }
        // A callback of the old period that is running now restarts nothing: the arming below
        // stands, whichever of the two comes first.
        self.period.store(Ns::from_duration(period).0, Ordering::Relaxed);
        self.timer.start_range(first, first + slack)?;
        Ok(())
    }

    /// Stops it without waiting for its callback.
    pub fn cancel(&self) -> Cancel {
        self.timer.cancel()
    }

    /// Is it running its periods?
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }
}

impl Period<'_, '_> {
    /// Expiries that were missed since the last callback: 0 if all is well.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }
}

impl<'b> Deref for Period<'_, 'b> {
    type Target = Fired<'b>;

    fn deref(&self) -> &Fired<'b> {
        self.fired
    }
}

impl DerefMut for Period<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.fired
    }
}

impl Fired<'_> {
    /// Asks for the next period, and says how many were missed.
    fn next_period(&mut self, period: Ns, missed: Missed) -> u64 {
        match missed {
            Missed::Skip => self.forward(period.to_duration()).saturating_sub(1),
            Missed::Burst => {
                let Window { soft, hard } = self.window();
                self.restart_range(soft.after(period), hard.after(period));
                self.late_by().as_nanos() as u64 / period.0.max(1)
            }
            Missed::Delay => {
                let Window { soft, hard } = self.window();
                let next = self.now().after(period);
                self.restart_range(next, next.after(hard.since(soft)));
                self.late_by().as_nanos() as u64 / period.0.max(1)
            }
        }
    }
}
