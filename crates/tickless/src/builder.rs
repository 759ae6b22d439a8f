//! How timers are set up.

use crate::Timers;
use crate::event_loop::{Callback, Descriptor, EventLoopDriver};
use crate::host::chance::Chance;
use crate::host::clock::HostClock;
use crate::host::cpu::CpuMap;
use crate::host::device::{BaseDevice, Device, DeviceFallback};
use crate::host::fork::Process;
use crate::host::manual_clock::ManualClock;
use crate::host::worker::Worker;
use crate::host::{Host, driver};
use crate::timers::PanicReporter;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bases::{Deferral, Scan, Settings, WheelEvents};
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{Limits, Policy};
use tickless_core::time::{CpuId, Ns, Tick};

/// Sets timers up; from [`Timers::builder`].
#[must_use = "a builder does nothing until `start` is called"]
pub struct Builder {
    pub(crate) core: Settings,
    bases: Option<u16>,
    clock: Clock,
    device: Device,
    /// How often a handler that cannot catch up tries again; `None`: as suits who drives it.
    passes: Option<u32>,
    /// How often a driver looks by itself; [`Ns::NEVER`] if not at all.
    pub(crate) recheck: Ns,
    pinning: Pinning,
    pub(crate) ticks: bool,
    pub(crate) on_panic: Option<Arc<PanicReporter>>,
    pub(crate) times_callbacks: bool,
    pub(crate) slow_after: Ns,
    pub(crate) notes_armings: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    Best,
    System,
}

/// What a thread of ours is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    Driver,
    Expirer,
    Rescuer,
}

/// May a driver thread move between CPUs?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pinning {
    Free,
    OnItsCpu,
}

/// Why timers could not be started.
#[derive(Debug)]
pub enum StartTimersError {
    /// The system refused a driver thread; fewer bases may do.
    Thread {
        /// The base it was for.
        base: CpuId,
        /// What the system said.
        error: std::io::Error,
    },
    /// The system refused the descriptor for a loop to poll;
    /// [`start_in_loop_with`](Builder::start_in_loop_with) does without.
    Descriptor(DeviceFallback),
}

impl fmt::Display for StartTimersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartTimersError::Thread { base, error } => write!(
                f,
                "the driver thread of base {} could not be started ({error}); \
                 raise the limit on threads or ask for fewer bases",
                base.0
            ),
            StartTimersError::Descriptor(DeviceFallback { call, errno }) => write!(
                f,
                "no descriptor for the event loop: {call} was refused ({}); use \
                 start_in_loop_with, or allow the call",
                std::io::Error::from_raw_os_error(*errno)
            ),
        }
    }
}

impl std::error::Error for StartTimersError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartTimersError::Thread { error, .. } => Some(error),
            StartTimersError::Descriptor(_) => None,
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("core", &self.core)
            .field("bases", &self.bases)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// A base per CPU, a tick of 1 ms, the best clock, lazy rearming, lazy push-out.
    pub fn new() -> Builder {
        let limits = Limits { tolerance: Ns::from_ms(1), ..Limits::NONE };
        let core = Settings { limits, patience: Ns::from_ms(100), ..Settings::default() };
        Builder {
            core,
            bases: None,
            clock: Clock::Best,
            device: Device::default(),
            passes: None,
            recheck: Ns::NEVER,
            pinning: Pinning::Free,
            ticks: false,
            on_panic: None,
            times_callbacks: false,
            slow_after: Ns::from_ms(100),
            notes_armings: false,
        }
    }

    /// How many bases, each with its driver thread; at least one. More than CPUs is pointless.
    pub fn bases(mut self, count: u16) -> Builder {
        self.bases = Some(count);
        self
    }

    /// The tick of coarse timers, 1 µs to 1 s. Shorter: timeouts are less late, and wake more.
    pub fn tick(mut self, tick: Tick) -> Builder {
        self.core.tick = tick;
        self
    }

    /// When taking off the first timer programs the event device.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.core.policy = policy;
        self
    }

    /// What drivers wait in: [`Device::Futex`] unless told otherwise. If the system refuses
    /// another one, it is a futex all the same, and
    /// [`Timers::device_fallback`](crate::Timers::device_fallback) says why.
    pub fn device(mut self, device: Device) -> Builder {
        self.device = device;
        self
    }

    /// A driver is not woken sooner than this after a timer was armed, or after it was woken
    /// last: a timer that is due earlier is late by as much at most (R8, R11). 0 unless told
    /// otherwise. It bounds how often a driver wakes, to once in such a time.
    pub fn min_delta(mut self, delta: Duration) -> Builder {
        self.core.limits.min_delta = Ns::from_duration(delta);
        self
    }

    /// A driver sleeps no longer than this while anything is pending (R11), a microsecond at
    /// least; as long as it likes unless told otherwise.
    pub fn max_delta(mut self, delta: Duration) -> Builder {
        self.core.limits.max_delta = Ns::from_duration(delta).max(Ns::from_us(1));
        self
    }

    /// A driver that finds timers due again and again, for so many passes in a row, leaves them
    /// for as long as those took, `longest` at most, and counts that
    /// ([`DeviceCounts::hangs`](crate::DeviceCounts::hangs)) (R7).
    ///
    /// Unless told otherwise, a driver thread never does: it is a thread among others, and the
    /// system sees to it that it does not starve the rest. In an event loop it is 3 passes and
    /// 100 ms, as in the kernel, and the loop has its turn meanwhile. At least one pass is made.
    pub fn back_off(mut self, passes: u32, longest: Duration) -> Builder {
        self.passes = Some(passes.max(1));
        self.core.limits.backoff_max = Ns::from_duration(longest);
        self
    }

    /// A driver thread looks at its base at least this often, whatever its device says, idle or
    /// not: what an event that gets lost costs at most (R13). The kernel loses none, so it does
    /// not unless told so; it is for systems that one does not trust, and costs a wakeup each
    /// time. Not more often than every millisecond, and in whole ones with a timerfd. A loop of
    /// the program's rechecks by waiting no longer than it likes.
    pub fn recheck(mut self, every: Duration) -> Builder {
        self.recheck = Ns::from_duration(every).max(Ns::from_ms(1));
        self
    }

    /// An event that comes later than this after its time is counted as late, in
    /// [`DeviceCounts::late`](crate::DeviceCounts::late); 1 ms unless told otherwise. It changes
    /// nothing else.
    pub fn late_after(mut self, tolerance: Duration) -> Builder {
        self.core.limits.tolerance = Ns::from_duration(tolerance);
        self
    }

    /// How pending timeouts are pushed out.
    pub fn push_out(mut self, push_out: PushOut) -> Builder {
        self.core.push_out = push_out;
        self
    }

    /// Where the callbacks of timeouts run, and of high-resolution timers that are
    /// [`deferred`](crate::HrTimer::deferred). Unless told otherwise: in the driver.
    ///
    /// With [`Deferral::OnExpiry`] they run in an expiry thread of their base, so that a callback
    /// that takes long does not hold up timers that fire in the driver. That costs a wakeup of
    /// that thread for every batch that expires. [`Deferral::EveryTick`] wakes it for every tick
    /// of the driver, as the real-time kernel once did; it is there to be
    /// compared with, and implies [`ticking`](Builder::ticking).
    pub fn deferral(mut self, deferral: Deferral) -> Builder {
        self.core.deferral = deferral;
        if deferral == Deferral::EveryTick { self.ticking() } else { self }
    }

    /// Drivers wake on every tick, like a kernel with a periodic tick, and look whether
    /// timeouts have expired; high-resolution timers still have wakeups of their own. It is there
    /// to be compared with: a thousand wakeups a second with a tick of 1 ms.
    pub fn ticking(mut self) -> Builder {
        self.core.wheel = WheelEvents::Tick;
        self.ticks = true;
        self
    }

    /// How long an expiry thread may be stuck in a callback before another thread fires its other
    /// timers (D9); 100 ms unless told otherwise. One thread stands in for all bases.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.core.patience = Ns::from_duration(patience);
        self
    }

    /// Which bases a synchronous cancel looks at.
    pub fn scan(mut self, scan: Scan) -> Builder {
        self.core.scan = scan;
        self
    }

    /// Reads `CLOCK_MONOTONIC` every time, even where the TSC could be trusted.
    pub fn system_clock(mut self) -> Builder {
        self.clock = Clock::System;
        self
    }

    /// Keeps each driver thread on its base's CPU. Better caches; worse latency where other
    /// threads hog that CPU.
    pub fn pin_drivers(mut self) -> Builder {
        self.pinning = Pinning::OnItsCpu;
        self
    }

    /// Is called, on the driver thread, with what a callback panicked with. The panic itself
    /// has been printed by the program's panic hook already. The reporter may drop the timer
    /// that panicked; if it panics itself, that is ignored.
    pub fn on_panic(
        mut self,
        reporter: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static,
    ) -> Builder {
        self.on_panic = Some(Arc::new(reporter));
        self
    }

    /// Measures how long each callback takes, for [`Stats::callbacks`](crate::Stats::callbacks).
    /// Costs two readings of the clock and a lock for each, about 40 ns.
    pub fn time_callbacks(mut self) -> Builder {
        self.times_callbacks = true;
        self
    }

    /// From when on a timed callback counts as slow, and an expiry as overdue, of whose base that
    /// says that it was held up: by a callback, or for want of a CPU. 100 ms unless told
    /// otherwise. With the feature `tracing` both are warned of.
    pub fn slow_after(mut self, limit: Duration) -> Builder {
        self.slow_after = Ns::from_duration(limit);
        self
    }

    /// In programs that are built for debugging: notes where each timer was last armed, for
    /// [`Timers::leaks`] and [`Timers::timer_list`]. Takes a lock for each arming, all timers'
    /// one; programs that are built with optimisations alone note nothing.
    pub fn note_armings(mut self) -> Builder {
        self.notes_armings = true;
        self
    }

    /// Starts the timers and their driver threads.
    pub fn start(mut self) -> Result<Timers, StartTimersError> {
        // See `back_off`.
        self.core.limits.passes = self.passes.unwrap_or(u32::MAX);
        let host = Host::with_device(self.host_clock(), self.cpu_map(), self.device);
        let timers = Timers::without_drivers(host, &self, Some(Process::this()));
        let defers = self.core.deferral != Deferral::None;
        for base in 0..timers.shared.bases.count() {
            let base = CpuId(base as u16);
            self.add_thread(&timers, base, Job::Driver)?;
            if defers {
                self.add_thread(&timers, base, Job::Expirer)?;
            }
        }
        if defers {
            self.add_thread(&timers, CpuId(0), Job::Rescuer)?;
        }
        Ok(timers)
    }

    /// Starts timers on one base that an event loop of the program's drives: no thread of ours.
    /// The loop polls the driver, which is a file descriptor; see [`EventLoopDriver`].
    ///
    /// Arming a timer that is due before all others is one system call; nothing else is one.
    /// What concerns drivers' threads (pinning them, deferring expiry, ticking) is ignored.
    pub fn start_in_loop(self) -> Result<(Timers, EventLoopDriver<Descriptor>), StartTimersError> {
        let (wakes_by, device) = Descriptor::new().map_err(StartTimersError::Descriptor)?;
        let timers = self.without_threads(vec![device]);
        let driver = EventLoopDriver::new(timers.shared.for_driver(), CpuId(0), wakes_by);
        Ok((timers, driver))
    }

    /// The same with as many bases as [`bases`](Builder::bases) said, or one a CPU, and a driver
    /// for each: for programs with a loop on each CPU.
    pub fn start_in_loops(
        self,
    ) -> Result<(Timers, Vec<EventLoopDriver<Descriptor>>), StartTimersError> {
        let bases = self.cpu_map().bases();
        let made: Result<Vec<_>, _> = (0..bases).map(|_| Descriptor::new()).collect();
        let (wakes_by, devices): (Vec<_>, Vec<_>) =
            made.map_err(StartTimersError::Descriptor)?.into_iter().unzip();
        let timers = self.without_threads(devices);
        let driver = |(base, wakes_by)| {
            EventLoopDriver::new(timers.shared.for_driver(), CpuId(base as u16), wakes_by)
        };
        let drivers = wakes_by.into_iter().enumerate().map(driver).collect();
        Ok((timers, drivers))
    }

    /// The same as [`start_in_loop`](Builder::start_in_loop) for a loop that waits by a timeout,
    /// the driver's [`timeout`](EventLoopDriver::timeout), and not for a descriptor.
    ///
    /// `on_rearm` is called with the new deadline when a timer is armed that is due before what
    /// the loop was last told by [`next_event`](EventLoopDriver::next_event) or `timeout`, by the
    /// thread that arms it, which may be the loop's own, and without any lock. It must see to it
    /// that a loop which is about to wait, or waits, asks again: write to an eventfd, or use the
    /// loop's waker. It may be called more often than needed, by several threads at once, and
    /// it must not panic. It is not called from where the loop starts to
    /// [`run`](EventLoopDriver::run) until it asks for the next event. Arming is no system call
    /// by itself.
    pub fn start_in_loop_with(
        self,
        on_rearm: impl Fn(Ns) + Send + Sync + 'static,
    ) -> (Timers, EventLoopDriver<Callback>) {
        let (wakes_by, device) = Callback::new(Box::new(on_rearm));
        let timers = self.without_threads(vec![device]);
        let driver = EventLoopDriver::new(timers.shared.for_driver(), CpuId(0), wakes_by);
        (timers, driver)
    }

    /// Timers with these devices, one a base, and nobody who drives them yet.
    fn without_threads(mut self, devices: Vec<BaseDevice>) -> Timers {
        self.core.deferral = Deferral::None;
        self.core.wheel = WheelEvents::Device;
        self.ticks = false;
        if let Some(passes) = self.passes {
            self.core.limits.passes = passes;
        }
        let cpus = CpuMap::of_this_process().with_bases(devices.len() as u16);
        let host = Host::with_devices(self.host_clock(), cpus, devices);
        Timers::without_drivers(host, &self, Some(Process::this()))
    }

    fn host_clock(&self) -> HostClock {
        match self.clock {
            Clock::Best => HostClock::new(),
            Clock::System => HostClock::system(),
        }
    }

    fn add_thread(&self, timers: &Timers, base: CpuId, job: Job) -> Result<(), StartTimersError> {
        let shared = timers.shared.for_driver();
        let cpu = match (self.pinning, job) {
            (Pinning::Free, _) | (_, Job::Rescuer) => None,
            (Pinning::OnItsCpu, _) => shared.bases.platform().cpus.cpu_of(base),
        };
        let name = match job {
            Job::Driver => format!("tickless/{}", base.0),
            Job::Expirer => format!("tickless-exp/{}", base.0),
            Job::Rescuer => "tickless-rescue".into(),
        };
        let work = move || {
            driver::sharpen_sleep();
            match cpu {
                Some(cpu) => driver::stay_on(cpu),
                None => shared.bases.platform().cpus.roam(),
            }
            match job {
                Job::Driver => shared.drive(base),
                Job::Expirer => shared.serve(base),
                Job::Rescuer => shared.stand_in(),
            }
        };
        let thread = Worker::spawn(name, work);
        let thread = thread.map_err(|error| StartTimersError::Thread { base, error })?;
        timers.shared.add_driver(thread);
        Ok(())
    }

    /// Timers that nobody drives, on this clock; on bases by chance if told so.
    pub(crate) fn start_virtual(
        mut self,
        clock: Arc<ManualClock>,
        chance: Option<Arc<Chance>>,
    ) -> Timers {
        // As with a driver: nobody is starved, since time stands still.
        self.core.limits.passes = self.passes.unwrap_or(u32::MAX);
        let cpus = match chance {
            Some(chance) => self.cpu_map().shuffled(chance),
            None => self.cpu_map(),
        };
        Timers::without_drivers(Host::new(HostClock::manual(clock), cpus), &self, None)
    }

    fn cpu_map(&self) -> CpuMap {
        let map = CpuMap::of_this_process();
        match self.bases {
            Some(bases) => map.with_bases(bases),
            None => map,
        }
    }
}
