//! Threads that share a quota of CPU time per period.
//!
//! Only the kernel can preempt a thread; this library cannot. So a worker must call
//! [`Worker::check`] again and again, and that call parks the thread when the quota is used up. The
//! CPU time is read from `CLOCK_THREAD_CPUTIME_ID`, which does not count waiting.

use super::controller::{Begin, Controller, Wake};
use super::limiter::AcquireError;
use super::plan::{BandwidthBuilder, Plan};
use crate::process;
use crate::timers::Timers;
use rustix::time::{ClockId, clock_gettime};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bandwidth::{BandwidthError, Counts, Grant, Group, MemberId};
use tickless_core::time::Ns;

/// Threads that share a quota of CPU time; from [`Timers::throttle`]. Cheap to clone.
///
/// ```
/// use std::time::Duration;
///
/// let timers = tickless::Timers::process()?;
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

/// One thread's membership in a [`Throttle`]. Dropping it returns the unused rest of the thread's
/// slice of the quota to the group.
#[derive(Debug)]
pub struct Worker {
    controller: Arc<Controller>,
    id: MemberId,
    /// The part of the thread's CPU time that has been charged to the group.
    charged: u64,
    /// How much CPU time, counted from `charged`, the thread can use before it must ask the group
    /// for another slice of the quota.
    left: u64,
    /// Makes the type `!Send`: `charged` is the CPU time of one thread.
    of_one_thread: PhantomData<*const ()>,
}

/// The default slice: how much of the quota a worker takes at a time. Linux has the same default.
const SLICE: Duration = Duration::from_millis(5);

impl Timers {
    /// Creates a builder for a group of threads that together can use `quota` of CPU time per
    /// `period`. The quota can be at most the period times the number of CPUs. If these are the
    /// timers of a tokio runtime, the group uses those of the process, because the runtime's clock
    /// can be paused while the threads use CPU time.
    pub fn throttle(&self, quota: Duration, period: Duration) -> BandwidthBuilder<Throttle> {
        let quota = Ns::from_duration(quota).0;
        let slice = quota.min(SLICE.as_nanos() as u64).max(1);
        let batch = self.shared.bases.count() as u32;
        BandwidthBuilder::new(self, Plan::new(quota, period, slice, batch))
    }
}

impl BandwidthBuilder<Throttle> {
    /// Sets how much unused quota carries over to later periods; 0 by default.
    pub fn extra(mut self, extra: Duration) -> Self {
        self.plan.settings.extra = Ns::from_duration(extra).0;
        self
    }

    /// Sets how much quota a worker takes at a time; by default 5 ms, or the quota if that is less.
    /// A smaller slice is fairer to the group's other threads, but takes a lock more often.
    pub fn slice(mut self, slice: Duration) -> Self {
        self.plan.settings.slice = Ns::from_duration(slice).0;
        self
    }

    /// Starts the group. Allocates.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] if a setting is out of range, or in a forked child.
    pub fn start(self) -> Result<Throttle, BandwidthError> {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        self.plan.settings.check_cpu_time(cpus)?;
        // CPU time is real, so no runtime's clock can count its periods.
        let is_of_runtime = self.timers.shared.bases.platform().clock.runtime().is_some();
        let timers = if is_of_runtime { process::timers() } else { Some(&self.timers) };
        let timers = timers.ok_or(BandwidthError::NoTimers)?;
        Ok(Throttle { controller: Controller::start(timers, self.plan, Begin::Full)? })
    }
}

impl Throttle {
    /// Makes the calling thread a worker. CPU time that it used before is not charged. Takes the
    /// group's lock and makes one system call.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoTimers`] in a forked child.
    pub fn join(&self) -> Result<Worker, AcquireError> {
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
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

    /// Returns the group's counters. A worker reports its use only when its slice is used up, so
    /// the counters can be behind by up to one slice per worker. Takes the lock.
    pub fn counts(&self) -> Counts {
        self.controller.counts()
    }

    /// Returns how many workers wait. Takes the group's lock.
    pub fn waiting(&self) -> usize {
        self.controller.read(Group::waiting).unwrap_or(0)
    }

    /// Returns the group's phase: how long after each multiple of its period on the timers' clock
    /// its quota is refilled.
    pub fn phase_offset(&self) -> Option<Duration> {
        self.controller.phase_offset()
    }
}

impl Worker {
    /// Parks this thread while the group's quota is used up. Returns whether it had to wait.
    ///
    /// Reads the thread's CPU time by a system call of about 100 ns. Takes the group's lock only
    /// when a slice is used up. What the thread uses beyond the quota is subtracted from the next
    /// period's quota.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoTimers`] in a forked child, at the latest when the parent's slice is used
    /// up.
    pub fn check(&mut self) -> Result<bool, AcquireError> {
        // In a forked child the thread's CPU time begins again at zero.
        let used = thread_cpu_time().checked_sub(self.charged);
        if used.is_some_and(|used| used < self.left) {
            return Ok(false);
        }
        let used = used.unwrap_or(0);
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        state.group.charge(self.id, used);
        self.charged += used;
        // `ask` fails only for a worker that has not joined, or a request above the quota. This
        // worker has joined, and requests 1 ns, which never exceeds the quota.
        let grant = state.group.ask(self.id, 1, now).unwrap_or(Grant::Run(0));
        match grant {
            Grant::Run(left) => {
                self.left = left;
                self.controller.finish(state, now);
                Ok(false)
            }
            Grant::Wait => {
                state.waiting.insert(self.id, Wake::Thread(std::thread::current()));
                self.controller.finish(state, now);
                self.wait()?;
                Ok(true)
            }
        }
    }

    /// Returns the unused part of the thread's slice to the group. Call it before the thread is
    /// idle for long. Makes one system call and takes the group's lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoTimers`] in a forked child.
    pub fn rest(&mut self) -> Result<(), AcquireError> {
        let used = thread_cpu_time().saturating_sub(self.charged);
        let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
        state.group.charge(self.id, used);
        state.group.rest(self.id, 0);
        self.charged += used;
        self.left = 0;
        self.controller.finish(state, now);
        Ok(())
    }

    /// Parks until the worker is released. Refills the group itself if the refill timer is late.
    fn wait(&mut self) -> Result<(), AcquireError> {
        loop {
            let (mut state, now) = self.controller.enter().ok_or(AcquireError::NoTimers)?;
            if !state.waiting.contains_key(&self.id) {
                // The group has released this worker: `ask` returns how much CPU time it can use.
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

impl Drop for Worker {
    fn drop(&mut self) {
        let used = thread_cpu_time().saturating_sub(self.charged);
        if let Some((mut state, now)) = self.controller.enter() {
            state.group.charge(self.id, used);
            let wake = state.waiting.remove(&self.id);
            state.group.leave(self.id);
            self.controller.finish(state, now);
            drop(wake);
        }
    }
}

/// The CPU time that the calling thread has used, in nanoseconds. One system call.
fn thread_cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither field is ever negative.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
