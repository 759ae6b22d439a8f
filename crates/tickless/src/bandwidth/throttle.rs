//! Threads that share so much CPU time in every period.
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

/// Sets a [`Throttle`] up; from [`Timers::throttle`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct ThrottleBuilder {
    timers: Timers,
    plan: Plan,
}

/// One thread's part in a [`Throttle`]. Dropping it gives back what it has not used.
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

/// Why a worker is not throttled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThrottleError {
    /// The timers have ended, or stayed with the process that forked: nothing refills the quota
    /// any more. Start timers anew, or go on unthrottled.
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
    /// A group of threads that may use `quota` of CPU time in every `period`, all together. Up to
    /// as many periods as there are CPUs.
    pub fn throttle(&self, quota: Duration, period: Duration) -> ThrottleBuilder {
        let quota = Ns::from_duration(quota).0;
        let slice = quota.min(SLICE.as_nanos() as u64).max(1);
        let batch = self.shared.bases.count() as u32;
        let plan = Plan::new(quota, period, slice, batch);
        ThrottleBuilder { timers: self.clone(), plan }
    }
}

impl ThrottleBuilder {
    /// How much of what a period leaves over may be used later; 0 unless set.
    pub fn extra(mut self, extra: Duration) -> ThrottleBuilder {
        self.plan.settings.extra = Ns::from_duration(extra).0;
        self
    }

    /// How much a worker takes at a time; 5 ms, or the quota if that is less. Smaller: fairer
    /// between the group's threads, and more often a lock.
    pub fn slice(mut self, slice: Duration) -> ThrottleBuilder {
        self.plan.settings.slice = Ns::from_duration(slice).0;
        self
    }

    /// Where in its period it is refilled; [`Phase::Spread`] unless set.
    pub fn phase(mut self, phase: Phase) -> ThrottleBuilder {
        self.plan.phase = phase;
        self
    }

    /// How late a refill may be, to share a wakeup. Unless set, a thousandth of the period, and up
    /// to a tenth if there are hundreds of groups of the same period.
    pub fn slack(mut self, slack: Duration) -> ThrottleBuilder {
        self.plan.slack = Some(slack);
        self
    }

    /// How fast waiting workers are let go; as many as there are bases every millisecond, or
    /// every 64th of the period if that is shorter, unless set.
    pub fn release(mut self, release: Release) -> ThrottleBuilder {
        self.plan.settings.release = release;
        self
    }

    /// Starts the group. Allocates.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] if quota or period are out of range, the phase cannot be had, or the
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

    /// What has happened. Workers report what they use when their slice is used up, so up to a
    /// slice each counts as held that has been used by now.
    pub fn counts(&self) -> Counts {
        self.controller.counts()
    }

    /// How many workers wait.
    pub fn waiting(&self) -> usize {
        self.controller.look(Group::waiting).unwrap_or(0)
    }

    /// How far behind the multiples of its period it is refilled.
    pub fn phase_offset(&self) -> Option<Duration> {
        self.controller.phase_offset()
    }
}

impl Worker {
    /// May this thread go on? If the group's quota is used up, parks until it may.
    ///
    /// Reads the thread's CPU time, a system call of some 100 ns. Only when a slice is used up it
    /// takes the group's lock. The thread uses more than the quota by what it does between two
    /// calls at most, and pays that back out of the next period. Returns whether it had to wait.
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

    /// Gives back what the thread has not used of its slice: for one that is about to rest for
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

    /// Parks until it is let go. Looks after the group itself if no timer has by the time that
    /// one should: drivers may be held up by somebody's callback.
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

/// What came of [`Worker::check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Checked {
    /// It may go on at once.
    AtOnce,
    /// It had to wait for a refill.
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
