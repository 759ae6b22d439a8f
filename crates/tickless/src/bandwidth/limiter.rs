//! Permits, so many in every period: taken at once, or awaited on any runtime.

use super::controller::{Controller, Wake};
use super::plan::{BandwidthError, Plan};
use crate::{Phase, Timers};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless_core::bandwidth::{AskError, Counts, Grant, Group, MemberId, Release};
use tickless_core::time::Ns;

/// Permits, so many in every period; from [`Timers::limiter`]. Cheap to clone.
///
/// First come, first served: a small request does not overtake a large one that waits. Who
/// waits costs nothing until it is woken; permits that a dropped future had been given go back.
///
/// ```
/// use std::time::Duration;
/// use tickless::AcquireError;
///
/// let time = tickless::VirtualTime::new();
/// // 10 in 100 ms, up to 20 after a quiet time.
/// let limiter = time.timers().limiter(10, Duration::from_millis(100)).burst(10).start()?;
/// limiter.try_acquire(10)?;
/// assert_eq!(limiter.try_acquire(1), Err(AcquireError::Empty));
/// time.advance(Duration::from_secs(1));
/// limiter.try_acquire(20)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    controller: Arc<Controller>,
}

/// Sets a [`Limiter`] up; from [`Timers::limiter`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct LimiterBuilder {
    timers: Timers,
    plan: Plan,
}

/// Why there is no permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcquireError {
    /// Too few are left, or others wait for them. Await them, or try again in a later period.
    Empty,
    /// So many are never there at once. Ask for less at a time.
    NeverEnough {
        /// The most that can be asked for.
        most: u64,
    },
    /// The timers have ended, or stayed with the process that forked: nothing refills the
    /// permits any more. Start timers anew.
    NoTimers,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Empty => f.write_str("no permits are left; await them, or try later"),
            AcquireError::NeverEnough { most } => {
                write!(f, "more than {most} are never there at once; ask for less at a time")
            }
            AcquireError::NoTimers => {
                f.write_str("nothing refills these permits in this process; start timers anew")
            }
        }
    }
}

impl std::error::Error for AcquireError {}

impl From<AskError> for AcquireError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NeverEnough { most } => AcquireError::NeverEnough { most },
            AskError::Left => AcquireError::Empty,
        }
    }
}

/// How many of those that await permits are woken at once.
const BATCH: u32 = 32;

impl Timers {
    /// `permits` in every `period`.
    pub fn limiter(&self, permits: u64, period: Duration) -> LimiterBuilder {
        LimiterBuilder { timers: self.clone(), plan: Plan::new(permits, period, 1, BATCH) }
    }
}

impl LimiterBuilder {
    /// How many that a period leaves over may be used later; 0 unless set.
    pub fn burst(mut self, burst: u64) -> LimiterBuilder {
        self.plan.settings.burst = burst;
        self
    }

    /// Where in its period it is refilled; [`Phase::Spread`] unless set.
    pub fn phase(mut self, phase: Phase) -> LimiterBuilder {
        self.plan.phase = phase;
        self
    }

    /// How late a refill may be, to share a wakeup. Unless set, a thousandth of the period, and up
    /// to a tenth if there are hundreds of groups of the same period.
    pub fn slack(mut self, slack: Duration) -> LimiterBuilder {
        self.plan.slack = Some(slack);
        self
    }

    /// How fast tasks that wait are woken; 32 every millisecond, or every 64th of the period if
    /// that is shorter, unless set.
    pub fn release(mut self, release: Release) -> LimiterBuilder {
        self.plan.settings.release = release;
        self
    }

    /// Starts it, with one period's permits to begin with. Allocates.
    pub fn start(self) -> Result<Limiter, BandwidthError> {
        Ok(Limiter { controller: Controller::start(&self.timers, self.plan)? })
    }
}

impl Limiter {
    /// Takes permits if they are there. Never waits but for an uncontended lock.
    pub fn try_acquire(&self, permits: u64) -> Result<(), AcquireError> {
        let (mut state, now) = self.controller.enter().map_err(|_| AcquireError::NoTimers)?;
        let took = state.group.try_take(permits);
        self.controller.finish(state, now);
        if took? { Ok(()) } else { Err(AcquireError::Empty) }
    }

    /// Takes permits as soon as they are there. Does nothing until it is polled; needs no
    /// particular runtime.
    pub fn acquire(&self, permits: u64) -> Acquire {
        Acquire { controller: Arc::clone(&self.controller), permits, place: Place::Nowhere }
    }

    /// How many permits are there now.
    pub fn available(&self) -> u64 {
        let Ok((state, now)) = self.controller.enter() else { return 0 };
        let available = u64::try_from(state.group.pool()).unwrap_or(0);
        self.controller.finish(state, now);
        available
    }

    /// What has happened.
    pub fn counts(&self) -> Counts {
        self.controller.counts()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.controller.look(Group::waiting).unwrap_or(0)
    }

    /// How far behind the multiples of its period it is refilled.
    pub fn place(&self) -> Option<Ns> {
        self.controller.place()
    }
}

/// Permits to come; from [`Limiter::acquire`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire {
    controller: Arc<Controller>,
    permits: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Not asked yet, or done.
    Nowhere,
    InLine(MemberId),
}

impl Acquire {
    fn ask(&mut self, waker: Wake) -> Poll<Result<(), AcquireError>> {
        let (mut state, now) = self.controller.enter().map_err(|_| AcquireError::NoTimers)?;
        let took = state.group.try_take(self.permits);
        if took == Ok(false) {
            // Not there, or not its turn: a member of its own stands in line for it.
            let id = state.group.join();
            match state.group.ask(id, self.permits, now) {
                Ok(Grant::Wait) => {
                    state.waiting.insert(id, waker);
                    self.place = Place::InLine(id);
                }
                // What could not be taken at once cannot be lent at once; were it, it is had.
                granted => {
                    state.group.charge(id, granted.map_or(0, |_| self.permits));
                    state.group.leave(id);
                    self.controller.finish(state, now);
                    return Poll::Ready(granted.map(|_| ()).map_err(AcquireError::from));
                }
            }
        }
        self.controller.finish(state, now);
        match took {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// In line: is it its turn?
    fn look(&mut self, id: MemberId, waker: Wake) -> Poll<Result<(), AcquireError>> {
        let (mut state, now) = self.controller.enter().map_err(|_| AcquireError::NoTimers)?;
        if let Some(old) = state.waiting.get_mut(&id) {
            let old = std::mem::replace(old, waker);
            self.controller.finish(state, now);
            drop(old);
            return Poll::Pending;
        }
        self.place = Place::Nowhere;
        state.group.leave(id);
        self.controller.finish(state, now);
        Poll::Ready(Ok(()))
    }
}

impl Future for Acquire {
    type Output = Result<(), AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Before the lock: cloning a waker runs the runtime's code.
        let waker = Wake::Task(context.waker().clone(), self.permits);
        match self.place {
            Place::Nowhere => self.ask(waker),
            Place::InLine(id) => self.look(id, waker),
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if let Place::InLine(id) = self.place
            && let Ok((mut state, now)) = self.controller.enter()
        {
            let gone = state.waiting.remove(&id);
            if gone.is_none() {
                // It had been let go, and nobody knows.
                state.group.refund(id, self.permits);
            }
            state.group.leave(id);
            self.controller.finish(state, now);
            drop(gone);
        }
    }
}
