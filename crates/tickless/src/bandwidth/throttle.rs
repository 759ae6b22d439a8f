//! Threads that share a quota of CPU time per period.
//!
//! A thread cannot be stopped from outside without a kernel. So a worker asks, in a loop, whether
//! it may go on, and parks when the group has used up its quota. What it used is read from
//! `CLOCK_THREAD_CPUTIME_ID`, so waiting for a lock or a socket costs nothing.

use super::controller::{Begin, Controller, Wake};
use super::plan::{BandwidthError, Plan};
use crate::timers::Timers;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bandwidth::{Counts, Grant, Group, MemberId, Release};
use tickless_core::bases::StartError;
use tickless_core::phase::Phase;
use tickless_core::time::Ns;

/// Threads that share a quota of CPU time; from [`Timers::throttle`]. Cheap to clone.
///
/// ```
/// use std::time::Duration;
///
/// let timers = tickless::Timers::start()?;
/// // A quarter of one CPU.
/// let throttle = timers.throttle(Duration::from_millis(25), Duration::from_millis(100)).start()?;
/// let mut worker = throttle.join()?;
/// for _ in 0..100 {
///     worker.check()?; // parks if the quota of this period is used up
///     std::hint::black_box((0..1000).sum::<u64>());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Throttle {
    controller: Arc<Controller>,
}

/// Settings of a [`Throttle`]; from [`Timers::throttle`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct ThrottleBuilder {
    timers: Timers,
    plan: Plan,
}

/// One thread of a [`Throttle`]. Dropping it gives back the quota that it has not used.
#[derive(Debug)]
pub struct Worker {
    controller: Arc<Controller>,
    id: MemberId,
    /// The thread's CPU time that has been charged.
    charged: u64,
    /// How much more it may use before it asks.
    left: u64,
    /// The CPU time is that of one thread.
    of_one_thread: PhantomData<*const ()>,
}

/// Why a worker cannot be throttled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThrottleError {
    /// The timers have ended, or belong to the parent of a fork: nothing refills the quota any
    /// more. Start new timers, or continue unthrottled.
    NoTimers,
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThrottleError::NoTimers => f.write_str(
                "nothing refills this quota in this process; start timers anew, or go on without",
            ),
        }
    }
}

impl std::error::Error for ThrottleError {}

/// What a worker takes at a time, as the kernel's groups do.
const SLICE: Duration = Duration::from_millis(5);

impl Timers {
    /// Creates a builder for a group of threads that together may use `quota` of CPU time per
    /// `period`. The quota may be as many periods as there are CPUs.
    pub fn throttle(&self, quota: Duration, period: Duration) -> ThrottleBuilder {
        let quota = Ns::from_duration(quota).0;
        let slice = quota.min(SLICE.as_nanos() as u64).max(1);
        let batch = self.shared.bases.count() as u32;
        let plan = Plan::new(quota, period, slice, batch);
        ThrottleBuilder { timers: self.clone(), plan }
    }
}

impl ThrottleBuilder {
    /// How much of a period's unused quota may be used later; 0 by default.
    pub fn extra(mut self, extra: Duration) -> ThrottleBuilder {
        self.plan.settings.extra = Ns::from_duration(extra).0;
        self
    }

    /// How much quota a worker takes at a time; by default 5 ms, or the quota if that is less. Less
    /// is fairer between the group's threads, but takes a lock more often.
    pub fn slice(mut self, slice: Duration) -> ThrottleBuilder {
        self.plan.settings.slice = Ns::from_duration(slice).0;
        self
    }

    /// When in its period the group is refilled; [`Phase::Spread`] by default.
    pub fn phase(mut self, phase: Phase) -> ThrottleBuilder {
        self.plan.phase = phase;
        self
    }

    /// How late a refill may be, to share a wakeup. The default is a thousandth of the period, and
    /// up to a tenth if there are hundreds of groups with the same period.
    pub fn slack(mut self, slack: Duration) -> ThrottleBuilder {
        self.plan.slack = Some(slack);
        self
    }

    /// How fast waiting workers are released. The default is one per base in every millisecond, or
    /// in every 64th of the period if that is shorter.
    pub fn release(mut self, release: Release) -> ThrottleBuilder {
        self.plan.settings.release = release;
        self
    }

    /// Starts the group. Allocates.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] if quota or period are out of range, the phase is not available, or the
    /// timers have ended.
    pub fn start(self) -> Result<Throttle, BandwidthError> {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        self.plan.settings.check_cpu_time(cpus)?;
        Ok(Throttle { controller: Controller::start(&self.timers, self.plan, Begin::Anew)? })
    }
}

impl Throttle {
    /// Makes the calling thread a worker. What it used before is not charged.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::NoTimers`] if the timers have ended, so that nothing refills the quota.
    pub fn join(&self) -> Result<Worker, ThrottleError> {
        let (mut state, now) = self.controller.enter().map_err(no_timers)?;
        let id = state.group.join();
        self.controller.finish(state, now);
        Ok(Worker {
            controller: Arc::clone(&self.controller),
            id,
            charged: thread_cpu_time(),
            left: 0,
            of_one_thread: PhantomData,
        })
    }

    /// What the group has counted so far. Workers report their use when their slice is used up, so
    /// up to one slice per worker counts as held although it has been used.
    pub fn counts(&self) -> Counts {
        self.controller.counts()
    }

    /// How many workers wait.
    pub fn waiting(&self) -> usize {
        self.controller.look(Group::waiting).unwrap_or(0)
    }

    /// How long after each multiple of its period the group is refilled.
    pub fn phase_offset(&self) -> Option<Duration> {
        self.controller.phase_offset()
    }
}

impl Worker {
    /// Checks whether this thread may go on. If the group's quota is used up, parks until it may.
    ///
    /// Reads the thread's CPU time, a system call of some 100 ns, and takes the group's lock only
    /// when a slice is used up. The thread exceeds the quota by at most what it uses between two
    /// calls, and pays that back out of the next period. Returns whether it had to wait.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::NoTimers`] if the timers have ended, so that nothing refills the quota.
    pub fn check(&mut self) -> Result<Checked, ThrottleError> {
        let used = thread_cpu_time().saturating_sub(self.charged);
        if used < self.left {
            return Ok(Checked::AtOnce);
        }
        let (mut state, now) = self.controller.enter().map_err(no_timers)?;
        state.group.charge(self.id, used);
        self.charged += used;
        // A worker has joined, and 1 is never too much.
        let grant = state.group.ask(self.id, 1, now).unwrap_or(Grant::Run(0));
        match grant {
            Grant::Run(left) => {
                self.left = left;
                self.controller.finish(state, now);
                Ok(Checked::AtOnce)
            }
            Grant::Wait => {
                state.waiting.insert(self.id, Wake::Thread(std::thread::current()));
                self.controller.finish(state, now);
                self.wait()?;
                Ok(Checked::Waited)
            }
        }
    }

    /// Gives back what the thread has not used of its slice: for a thread that is about to rest for
    /// long while others of its group work.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::NoTimers`] if the timers have ended, so that nothing refills the quota.
    pub fn rest(&mut self) -> Result<(), ThrottleError> {
        let used = thread_cpu_time().saturating_sub(self.charged);
        let (mut state, now) = self.controller.enter().map_err(no_timers)?;
        state.group.charge(self.id, used);
        state.group.rest(self.id, 0);
        self.charged += used;
        self.left = 0;
        self.controller.finish(state, now);
        Ok(())
    }

    /// Parks until it is released. Looks after the group itself if no timer has by the time that
    /// one should: a callback may delay the drivers.
    fn wait(&mut self) -> Result<(), ThrottleError> {
        loop {
            let (mut state, now) = self.controller.enter().map_err(no_timers)?;
            if !state.waiting.contains_key(&self.id) {
                // It was given a slice when it was let go; this is how much.
                if let Ok(Grant::Run(left)) = state.group.ask(self.id, 1, now) {
                    self.left = left;
                    self.controller.finish(state, now);
                    return Ok(());
                }
                state.waiting.insert(self.id, Wake::Thread(std::thread::current()));
            }
            self.controller.finish(state, now);
            std::thread::park_timeout(self.controller.patience());
        }
    }
}

/// The result of [`Worker::check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Checked {
    /// The thread may go on at once.
    AtOnce,
    /// The thread had to wait for a refill.
    Waited,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let used = thread_cpu_time().saturating_sub(self.charged);
        if let Ok((mut state, now)) = self.controller.enter() {
            state.group.charge(self.id, used);
            let gone = state.waiting.remove(&self.id);
            state.group.leave(self.id);
            self.controller.finish(state, now);
            drop(gone);
        }
    }
}

fn no_timers(_: StartError) -> ThrottleError {
    ThrottleError::NoTimers
}

/// What the calling thread has used of a CPU, in nanoseconds. One system call.
fn thread_cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part is ever negative.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
