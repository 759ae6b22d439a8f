//! Rate limits: permits per period, taken immediately or awaited on any runtime.

use super::controller::{Begin, Controller, Wake};
use super::plan::{BandwidthBuilder, Plan};
use crate::platform::clock::ClockKind;
use crate::timers::Timers;
#[cfg(feature = "tokio-time")]
use crate::tokio_runtime::{self, ClockError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::Thread;
use std::time::Duration;
use tickless_core::bandwidth::{AskError, BandwidthError, Counts, Grant, Group, MemberId, Take};

/// A rate limit: a number of permits per period; from [`Timers::limiter`]. Cheap to clone.
///
/// Requests are served in order: a small request does not overtake a large one that waits. A future
/// that is dropped returns its permits. A call that takes permits, or fails because there are too
/// few, reads the clock and makes one compare-and-swap. Refilling the permits takes a lock once a
/// period; callers that wait for permits take this lock, too.
///
/// A refill adds all permits of a period at once. Limiters with the same period are refilled at
/// different times (see [`phase`](BandwidthBuilder::phase)), so the first refill can come less than
/// one period after the start. For one limit per user or address, see
/// [`KeyedLimiter`](crate::bandwidth::KeyedLimiter).
///
/// ```
/// use std::time::Duration;
/// use tickless::bandwidth::AcquireError;
///
/// let time = tickless::VirtualTime::new();
/// // 10 in 100 ms, and up to 20 if permits are left over from an earlier period.
/// let limiter = time.timers().limiter(10, Duration::from_millis(100)).extra(10).start()?;
/// limiter.try_acquire(10)?;
/// assert_eq!(limiter.try_acquire(1), Err(AcquireError::Empty));
/// time.advance(Duration::from_secs(1));
/// limiter.try_acquire(20)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    pub(super) controller: Arc<Controller>,
}

/// Why permits, or a share of CPU time, could not be taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AcquireError {
    /// Too few permits are left, or earlier callers wait for them. Await the permits, or try again
    /// in a later period.
    Empty,
    /// The limiter never has that many permits at once. Ask for fewer at a time.
    NeverEnough {
        /// The most permits that can be taken at once.
        most: u64,
    },
    /// The timers have ended, or belong to the parent of a fork, so nothing refills the permits or
    /// the quota of CPU time. Start new timers.
    NoTimers,
    /// As many callers wait as [`waiting_max`](BandwidthBuilder::<Limiter>::waiting_max) allows.
    /// Nothing was taken. Refuse the work that needs the permits, or try again later.
    QueueFull,
    /// The permits did not come within the caller's timeout. Nothing was taken.
    TimedOut,
    /// The limiter has been [closed](Limiter::close). Nothing was taken.
    Closed,
    /// The program moves the caller's clock: the caller is in a tokio runtime whose clock was
    /// paused, or its thread has entered a [`VirtualTime`](crate::VirtualTime). The limiter's
    /// permits come by another clock, the system's or that of another runtime, so an answer would
    /// be wrong by the caller's. Create the limiter where it is used.
    OtherClock {
        /// The clock of the caller.
        caller: ClockKind,
        /// The clock by which permits come.
        permits: ClockKind,
    },
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Empty => f.write_str("no permits are left; await them, or try later"),
            AcquireError::NeverEnough { most } => {
                write!(f, "more than {most} are never available at once; ask for less at a time")
            }
            AcquireError::NoTimers => {
                f.write_str("nothing refills this quota in this process; start new timers")
            }
            AcquireError::QueueFull => f.write_str("too many callers wait; refuse this one"),
            AcquireError::TimedOut => {
                f.write_str("the permits were not available in time; wait longer")
            }
            AcquireError::Closed => f.write_str("the limiter is closed; stop, or create another"),
            AcquireError::OtherClock { caller, permits } => {
                let another = if caller == permits { ", another one" } else { "" };
                write!(
                    f,
                    "the caller is on {caller}, which the program moves, and the permits come by \
                     {permits}{another}; create the limiter on the caller's clock"
                )
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

/// How many waiting tasks are woken at once after a refill; see [`BandwidthBuilder::release`].
const BATCH: u32 = 32;

impl Timers {
    /// Creates a builder for a rate limit of `permits` per `period`.
    pub fn limiter(&self, permits: u64, period: Duration) -> BandwidthBuilder<Limiter> {
        BandwidthBuilder::new(self, Plan::new(permits, period, 1, BATCH))
    }
}

impl BandwidthBuilder<Limiter> {
    /// Sets how many unused permits carry over to later periods, on top of the permits of those
    /// periods; 0 by default.
    pub fn extra(mut self, extra: u64) -> Self {
        self.plan.settings.extra = extra;
        self
    }

    /// Limits how many callers wait for permits; by default, there is no limit. A call that would
    /// wait beyond that fails with [`AcquireError::QueueFull`], so the queue of an overloaded
    /// server does not grow. The check and the entry into the queue are one step under the
    /// limiter's lock: concurrent calls never exceed the limit. A keyed limiter has this limit for
    /// each key. Tasks whose permits
    /// have come no longer count, even before they are polled.
    pub fn waiting_max(mut self, callers: usize) -> Self {
        self.plan.waiting_max = callers;
        self
    }

    /// Starts the limiter, with one period's permits. Allocates.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] if a setting is out of range, or in a forked child.
    pub fn start(self) -> Result<Limiter, BandwidthError> {
        Ok(Limiter { controller: Controller::start(&self.timers, self.plan, Begin::Full)? })
    }
}

impl Limiter {
    /// Takes permits if they are available. Never waits for permits. Takes a lock on the first call
    /// of a period, which refills the permits, and while other callers wait; otherwise no lock.
    ///
    /// # Errors
    ///
    /// [`Empty`](AcquireError::Empty), [`NeverEnough`](AcquireError::NeverEnough),
    /// [`Closed`](AcquireError::Closed), [`OtherClock`](AcquireError::OtherClock), or
    /// [`NoTimers`](AcquireError::NoTimers) in a forked child and after the runtime of the timers.
    #[inline]
    pub fn try_acquire(&self, permits: u64) -> Result<(), AcquireError> {
        match self.controller.try_take(permits) {
            Take::Taken => Ok(()),
            Take::Refused => Err(self.refusal(permits)),
            Take::AskGroup => self.ask_group(permits),
        }
    }

    /// Returns why permits cannot be taken, found without the lock. Checks the caller's clock: the
    /// inlined attempt of `try_acquire` does not, until a clock that the program moves was seen.
    fn refusal(&self, permits: u64) -> AcquireError {
        match check_clock(self.controller.timers()) {
            Ok(()) => refusal(permits, self.controller.most()),
            Err(error) => error,
        }
    }

    /// Takes permits under the lock. First tries again without it, because the inlined attempt of
    /// `try_acquire` gives up if reading the clock takes a function call.
    #[inline(never)]
    fn ask_group(&self, permits: u64) -> Result<(), AcquireError> {
        check_clock(self.controller.timers())?;
        match self.controller.take(permits) {
            Take::Taken => return Ok(()),
            Take::Refused => return Err(refusal(permits, self.controller.most())),
            Take::AskGroup => {}
        }
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        let took = match state.is_closed {
            false => state.group.try_take(permits).map_err(AcquireError::from),
            true => Err(AcquireError::Closed),
        };
        self.controller.finish(state, now);
        if took? { Ok(()) } else { Err(AcquireError::Empty) }
    }

    /// Blocks the thread until the permits are available, and takes them. Threads and the tasks of
    /// [`acquire`](Limiter::acquire) wait in one queue. Allocates if it has to wait. On a virtual
    /// clock that advances automatically, use `time.block_on` with [`acquire`](Limiter::acquire),
    /// which keeps the clock exact. In a tokio runtime whose clock was paused, await `acquire`: the
    /// clock stands while this call blocks the runtime's thread.
    ///
    /// # Errors
    ///
    /// [`NeverEnough`](AcquireError::NeverEnough), [`QueueFull`](AcquireError::QueueFull),
    /// [`OtherClock`](AcquireError::OtherClock) and [`NoTimers`](AcquireError::NoTimers), without
    /// waiting; [`Closed`](AcquireError::Closed) as soon as the limiter is closed.
    pub fn blocking_acquire(&self, permits: u64) -> Result<(), AcquireError> {
        self.block(permits, None)
    }

    /// Like [`blocking_acquire`](Limiter::blocking_acquire), but waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// Also [`TimedOut`](AcquireError::TimedOut) if the permits were not available in time.
    pub fn blocking_acquire_timeout(
        &self,
        permits: u64,
        timeout: Duration,
    ) -> Result<(), AcquireError> {
        self.block(permits, Some(timeout))
    }

    /// Takes permits, and blocks this thread while there are too few, at most for `timeout`.
    fn block(&self, permits: u64, timeout: Option<Duration>) -> Result<(), AcquireError> {
        match self.try_acquire(permits) {
            Err(AcquireError::Empty) => {}
            done => return done,
        }
        let thread = std::thread::current();
        let timers = self.controller.timers();
        let deadline = timeout.map(|timeout| timers.now() + timeout);
        // Use a timer for the timeout, because `park_timeout` would wait in real time even if these
        // timers run on virtual time.
        let alarm = deadline.map(|deadline| {
            let thread = thread.clone();
            let alarm = timers.hrtimer(move |_| thread.unpark());
            alarm.start_at(deadline).map(|_| alarm)
        });
        let _alarm = alarm.transpose().map_err(|_| AcquireError::NoTimers)?;
        let waker = Waker::from(Arc::new(Unpark(thread)));
        let mut context = Context::from_waker(&waker);
        let mut acquire = std::pin::pin!(self.acquire(permits));
        loop {
            if let Poll::Ready(done) = acquire.as_mut().poll(&mut context) {
                return done;
            }
            if deadline.is_some_and(|deadline| timers.now() >= deadline) {
                return Err(AcquireError::TimedOut);
            }
            // The refill timer can be late because a long callback delays its driver, so refill
            // from this thread after a while.
            std::thread::park_timeout(self.controller.patience());
            self.controller.poke();
        }
    }

    /// Returns a future that takes permits as soon as they are available, on any runtime. It fails
    /// as [`blocking_acquire`](Limiter::blocking_acquire) does.
    pub fn acquire(
        &self,
        permits: u64,
    ) -> impl Future<Output = Result<(), AcquireError>> + Send + Sync + use<> {
        Acquire { controller: Arc::clone(&self.controller), permits, queued: None }
    }

    /// Closes the limiter, for a shutdown. The tasks and threads that wait are woken and fail with
    /// [`Closed`](AcquireError::Closed), as every later call does. Permits that were granted before
    /// stay granted. Takes the lock. Does not wait for the woken tasks and threads.
    pub fn close(&self) {
        self.controller.close();
    }

    /// Returns how many permits the caller can take now; 0 once the limiter is closed, or if the
    /// caller is on [another clock](AcquireError::OtherClock). Takes its lock.
    pub fn available(&self) -> u64 {
        if check_clock(self.controller.timers()).is_err() {
            return 0;
        }
        let Some((state, now)) = self.controller.enter() else { return 0 };
        let pool = if state.is_closed { 0 } else { state.group.pool() };
        let available = u64::try_from(pool).unwrap_or(0);
        self.controller.finish(state, now);
        available
    }

    /// Returns how long it will take until `permits` permits can be taken; zero if they are
    /// available now. The time allows for callers that already wait, but not for later requests. A
    /// server that refuses a request sends this time, rounded up to seconds, in HTTP's
    /// `Retry-After`. Takes the lock.
    ///
    /// # Errors
    ///
    /// Fails as [`try_acquire`](Limiter::try_acquire) does, but not with
    /// [`Empty`](AcquireError::Empty).
    pub fn retry_after(&self, permits: u64) -> Result<Duration, AcquireError> {
        check_clock(self.controller.timers())?;
        let (state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        let at = match state.is_closed {
            false => state.group.available_at(permits, now).map_err(AcquireError::from),
            true => Err(AcquireError::Closed),
        };
        self.controller.finish(state, now);
        Ok(at?.since(now).to_duration())
    }

    /// Returns the limiter's counters. Takes the lock.
    pub fn counts(&self) -> Counts {
        self.controller.counts()
    }

    /// Returns how many callers wait. Takes the lock.
    pub fn waiting(&self) -> usize {
        self.controller.read(Group::waiting).unwrap_or(0)
    }

    /// Returns the limiter's phase: how long after each multiple of its period on the timers' clock
    /// it is refilled.
    pub fn phase_offset(&self) -> Option<Duration> {
        self.controller.phase_offset()
    }
}

pub(super) fn refusal(permits: u64, most: u64) -> AcquireError {
    if permits > most { AcquireError::NeverEnough { most } } else { AcquireError::Empty }
}

/// Refuses a caller who is on another clock than that by which permits come.
#[cfg(feature = "tokio-time")]
pub(super) fn check_clock(timers: &Timers) -> Result<(), AcquireError> {
    tokio_runtime::check_clock(timers).map_err(|error| match error {
        ClockError::Ended => AcquireError::NoTimers,
        ClockError::Other { caller, permits } => AcquireError::OtherClock { caller, permits },
    })
}

/// Without tokio there is one clock.
#[cfg(not(feature = "tokio-time"))]
pub(super) fn check_clock(_: &Timers) -> Result<(), AcquireError> {
    Ok(())
}

struct Unpark(Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[derive(Debug)]
#[must_use = "a future does nothing until it is polled"]
struct Acquire {
    controller: Arc<Controller>,
    permits: u64,
    /// The member that waits for the permits.
    queued: Option<MemberId>,
}

impl Acquire {
    /// Takes the permits, or queues a request; `waker` is what to wake when it is granted.
    fn ask(&mut self, waker: Wake) -> Poll<Result<(), AcquireError>> {
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        if state.is_closed {
            self.controller.finish(state, now);
            return Poll::Ready(Err(AcquireError::Closed));
        }
        let took = state.group.try_take(self.permits);
        if took == Ok(false) && state.group.waiting() >= self.controller.waiting_max {
            self.controller.finish(state, now);
            return Poll::Ready(Err(AcquireError::QueueFull));
        }
        if took == Ok(false) {
            // Too few permits, or other callers wait: queue a new member for this request.
            let id = state.group.join();
            match state.group.ask(id, self.permits, now) {
                Ok(Grant::Wait) => {
                    state.waiting.insert(id, waker);
                    self.queued = Some(id);
                }
                // The group did not queue the request. This is not expected, since `try_take` has
                // just failed under the same lock. Charge the permits if they were granted.
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

    /// Completes if the member was released or the limiter closed; otherwise stores the waker.
    fn poll_queued(&mut self, id: MemberId, waker: Wake) -> Poll<Result<(), AcquireError>> {
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        let closed = if state.is_closed { state.waiting.remove(&id) } else { None };
        if let Some(old) = closed {
            self.queued = None;
            state.group.leave(id);
            self.controller.finish(state, now);
            drop(old);
            check_clock(self.controller.timers())?;
            return Poll::Ready(Err(AcquireError::Closed));
        }
        if let Some(old) = state.waiting.get_mut(&id) {
            let old = std::mem::replace(old, waker);
            self.controller.finish(state, now);
            drop(old);
            return Poll::Pending;
        }
        self.queued = None;
        state.group.leave(id);
        self.controller.finish(state, now);
        Poll::Ready(Ok(()))
    }
}

impl Future for Acquire {
    type Output = Result<(), AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.queued.is_none() {
            check_clock(self.controller.timers())?;
            match self.controller.take(self.permits) {
                Take::Taken => return Poll::Ready(Ok(())),
                Take::Refused | Take::AskGroup => {}
            }
        }
        // Clone before locking: cloning a waker runs the runtime's code.
        let waker = Wake::Task(context.waker().clone(), self.permits);
        match self.queued {
            None => self.ask(waker),
            Some(id) => self.poll_queued(id, waker),
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(id) = self.queued else { return };
        if let Some((mut state, now)) = self.controller.enter() {
            let wake = state.waiting.remove(&id);
            if wake.is_none() {
                // The member was released, but the future was not polled since: return its permits.
                state.group.refund(id, self.permits);
            }
            state.group.leave(id);
            self.controller.finish(state, now);
            drop(wake);
        }
    }
}
