//! How timers are set up.

#[cfg(linux_platform)]
use crate::event_loop::Descriptor;
use crate::event_loop::{Callback, EventLoopDriver};
use crate::events;
use crate::timer::glue::Host;
use crate::timer::shared::{Handle, Setup};
use crate::timers::Timers;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tickless_core::bases::{CoarseExpiry, Deferral, Settings, WheelEvents};
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::Limits;
use tickless_core::time::{CpuId, Instant, Ns, Tick};
use tickless_platform::chance::Chance;
use tickless_platform::clock::HostClock;
use tickless_platform::cpu::CpuMap;
use tickless_platform::device::base::BaseDevice;
use tickless_platform::device::fallback::{Device, RefusedCall};
use tickless_platform::driver;
use tickless_platform::fork::Process;
use tickless_platform::manual_clock::ManualClock;
use tickless_platform::wakeup::Wakeup;
use tickless_platform::worker::Worker;

/// Sets timers up; from [`Timers::builder`].
///
/// ```
/// use std::time::Duration;
/// use tickless::Timers;
/// use tickless::time::Tick;
///
/// let timers = Timers::builder()
///     .bases(1)
///     .tick(Tick::new(Duration::from_micros(100))?)
///     .slow_after(Duration::from_millis(10))
///     .on_panic(|_| eprintln!("a callback panicked"))
///     .start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until `start` is called"]
pub struct Builder {
    pub(crate) setup: Setup,
    bases: Option<u16>,
    clock: Clock,
    device: Device,
    /// How often a handler that cannot catch up tries again; `None`: as suits who drives it.
    passes: Option<u32>,
    pinning: Pinning,
    /// Do coarse timers on virtual time fire with their buckets?
    coarse_like_real: bool,
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
    #[cfg_attr(not(linux_platform), expect(dead_code, reason = "nothing pins threads there"))]
    OnItsCpu,
}

/// Why timers could not be started.
#[derive(Debug)]
#[non_exhaustive]
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
    Descriptor(RefusedCall),
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
            StartTimersError::Descriptor(RefusedCall { call, errno, .. }) => write!(
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
            .field("core", &self.setup.core)
            .field("bases", &self.bases)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Timers {
    /// To start timers in another way: with other settings, or a set of one's own.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// So many passes in a row a driver makes before it looks whether an expiry thread is to be woken,
/// or all is over. For that it goes round by way of its event device: a system call.
const DRIVER_PASSES: u32 = 16;

impl Builder {
    /// A base per CPU, a tick of 1 ms, the best clock, lazy rearming, lazy push-out.
    pub fn new() -> Builder {
        let limits = Limits { tolerance: Ns::from_ms(1), ..Limits::NONE };
        let core = Settings { limits, patience: Ns::from_ms(100), ..Settings::default() };
        let setup = Setup {
            core,
            set: 0,
            ticks: false,
            recheck: Ns::NEVER,
            wakeup: Wakeup::default(),
            on_panic: None,
            times_callbacks: false,
            slow_after: Ns::from_ms(100),
            notes_armings: false,
        };
        Builder {
            setup,
            bases: None,
            clock: Clock::Best,
            device: Device::default(),
            passes: None,
            pinning: Pinning::Free,
            coarse_like_real: false,
        }
    }

    /// How many bases, each with its driver thread; at least one. More than CPUs is pointless.
    pub fn bases(mut self, count: u16) -> Builder {
        self.bases = Some(count);
        self
    }

    /// The tick of coarse timers, 1 µs to 1 s. Shorter: timeouts are less late, and wake more.
    pub fn tick(mut self, tick: Tick) -> Builder {
        self.setup.core.tick = tick;
        self
    }

    /// What drivers wait in: [`Device::Futex`] unless told otherwise. If the system refuses
    /// another one, it is a futex all the same, and
    /// [`Timers::device_fallback`](crate::Timers::device_fallback) says why.
    pub fn device(mut self, device: Device) -> Builder {
        self.device = device;
        self
    }

    /// How drivers get up for a deadline: [`Wakeup::Sleep`] unless told otherwise, and timers are
    /// late by what waking a thread takes. The others trade CPU time for that: a driver gets up
    /// before the deadline and spins until then. No timer is early with any of them.
    ///
    /// It goes for every wakeup of a driver thread, whatever [`device`](Builder::device) it waits
    /// in, so for coarse timeouts and the ends of windows too: timers that may be late should have
    /// slack, or a set of their own. Ticks and [`recheck`](Builder::recheck) are not spun for. A
    /// timer that is armed meanwhile for an earlier time ends the spinning. In an event loop of
    /// the program's, and in virtual time, it means nothing.
    ///
    /// [`BaseStats::spun`](crate::stats::BaseStats::spun) says what it has cost.
    ///
    /// ```
    /// # #[cfg(miri)] fn main() {}
    /// # #[cfg(not(miri))] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tickless::Timers;
    /// use tickless::driver::Wakeup;
    ///
    /// // At most 5 % of one CPU goes into spinning.
    /// let timers = Timers::builder().bases(1).wakeup(Wakeup::Auto { cpu_share: 0.05 }).start()?;
    /// # drop(timers); Ok(())
    /// # }
    /// ```
    pub fn wakeup(mut self, wakeup: Wakeup) -> Builder {
        self.setup.wakeup = wakeup;
        self
    }

    /// A driver is not woken sooner than this after a timer was armed, or after it was woken
    /// last: a timer that is due earlier is late by as much at most (R8, R11). 0 unless told
    /// otherwise. It bounds how often a driver wakes, to once in such a time.
    pub fn min_delta(mut self, delta: Duration) -> Builder {
        self.setup.core.limits.min_delta = Ns::from_duration(delta);
        self
    }

    /// A driver sleeps no longer than this while anything is pending (R11), a microsecond at
    /// least; as long as it likes unless told otherwise.
    pub fn max_delta(mut self, delta: Duration) -> Builder {
        self.setup.core.limits.max_delta = Ns::from_duration(delta).max(Ns::from_us(1));
        self
    }

    /// A driver that finds timers due again and again, for so many passes in a row, leaves them
    /// for as long as those took, `longest` at most, and counts that
    /// ([`DeviceCounts::hangs`](crate::stats::DeviceCounts::hangs)) (R7).
    ///
    /// Unless told otherwise, a driver thread never does: it is a thread among others, and the
    /// system sees to it that it does not starve the rest. In an event loop it is 3 passes and
    /// 100 ms, as in the kernel, and the loop has its turn meanwhile. At least one pass is made. If
    /// `longest` is zero the handler comes back without a pause, and no hang is counted.
    pub fn back_off(mut self, passes: u32, longest: Duration) -> Builder {
        self.passes = Some(passes.max(1));
        self.setup.core.limits.backoff_max = Ns::from_duration(longest);
        self
    }

    /// A driver thread looks at its base at least this often, whatever its device says, idle or
    /// not: what an event that gets lost costs at most (R13). The kernel loses none, so it does
    /// not unless told so; it is for systems that one does not trust, and costs a wakeup each
    /// time. Not more often than every millisecond, and in whole ones with a timerfd. A loop of
    /// the program's rechecks by waiting no longer than it likes.
    pub fn recheck(mut self, every: Duration) -> Builder {
        self.setup.recheck = Ns::from_duration(every).max(Ns::from_ms(1));
        self
    }

    /// An event that comes later than this after its time is counted as late, in
    /// [`DeviceCounts::late`](crate::stats::DeviceCounts::late); 1 ms unless told otherwise. It
    /// changes nothing else.
    pub fn late_after(mut self, tolerance: Duration) -> Builder {
        self.setup.core.limits.tolerance = Ns::from_duration(tolerance);
        self
    }

    /// Runs the callbacks of timeouts, and of precise timers that are
    /// [`deferred`](crate::HrTimer::deferred), in an expiry thread of their base, so that a
    /// callback that takes long does not hold up timers that fire in the driver. That costs a
    /// wakeup of that thread for every batch that expires. Unless this is called they run in the
    /// driver.
    pub fn expiry_threads(mut self) -> Builder {
        self.setup.core.deferral = Deferral::OnExpiry;
        self
    }

    /// How long an expiry thread may be stuck in a callback before another thread fires its other
    /// timers (D9); 100 ms unless told otherwise. One thread stands in for all bases.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.setup.core.patience = Ns::from_duration(patience);
        self
    }

    /// Reads `CLOCK_MONOTONIC` every time, even where the TSC could be trusted.
    pub fn system_clock(mut self) -> Builder {
        self.clock = Clock::System;
        self
    }

    /// Linux only. Keeps each driver thread on its base's CPU. Better caches; worse latency where
    /// other threads hog that CPU.
    #[cfg(linux_platform)]
    pub fn pin_drivers(mut self) -> Builder {
        self.pinning = Pinning::OnItsCpu;
        self
    }

    /// Is called, on the driver thread, with what a callback panicked with. The panic itself
    /// has been printed by the program's panic hook already. The reporter may drop the timer
    /// that panicked; if it panics itself, that is ignored. A program that is built with
    /// `panic = "abort"` ends instead, and nothing is called.
    pub fn on_panic(
        mut self,
        reporter: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static,
    ) -> Builder {
        self.setup.on_panic = Some(Arc::new(reporter));
        self
    }

    /// Measures how long each callback takes, for
    /// [`Stats::callbacks`](crate::stats::Stats::callbacks). Costs two readings of the clock and a
    /// lock for each, about 40 ns.
    pub fn time_callbacks(mut self) -> Builder {
        self.setup.times_callbacks = true;
        self
    }

    /// From when on a timed callback counts as slow, and an expiry as overdue, of whose base that
    /// says that it was held up: by a callback, or for want of a CPU. 100 ms unless told
    /// otherwise. With the feature `tracing` both are warned of.
    pub fn slow_after(mut self, limit: Duration) -> Builder {
        self.setup.slow_after = Ns::from_duration(limit);
        self
    }

    /// In programs that are built for debugging: notes where each timer was last armed, for
    /// [`Timers::leaks`] and [`Timers::timer_list`]. Takes a lock for each arming, all timers'
    /// one; programs that are built with optimisations alone note nothing.
    pub fn note_armings(mut self) -> Builder {
        self.setup.notes_armings = true;
        self
    }

    /// For [`VirtualTime`](crate::VirtualTime), where coarse timers fire exactly at their deadlines
    /// unless this is asked for: has them fire with the wheel's buckets, as late as on a real
    /// clock. Real timers ignore it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickless::{Timers, VirtualTime};
    /// use tickless::time::Instant;
    ///
    /// let start = Instant::from_secs(1);
    /// let builder = Timers::builder().bases(1).coarse_like_real();
    /// let (exact, like_real) = (VirtualTime::new(), VirtualTime::with_builder(builder, start));
    /// for (time, late) in [(&exact, Duration::ZERO), (&like_real, Duration::from_millis(264))] {
    ///     let timeout = time.timers().timeout(|_| ());
    ///     timeout.start(Duration::from_secs(10))?;
    ///     time.advance_to_next();
    ///     assert_eq!(time.now() - start, Duration::from_secs(10) + late);
    /// }
    /// # Ok::<(), tickless::callback::StartError>(())
    /// ```
    pub fn coarse_like_real(mut self) -> Builder {
        self.coarse_like_real = true;
        self
    }

    /// Starts a set of timers and its driver threads. Their names have the set's number, which
    /// counts up from 1, and the base's: `tickless/1.0`.
    ///
    /// Blocks for about a millisecond, to calibrate the clock.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Thread`] if the system refuses a thread.
    pub fn start(mut self) -> Result<Timers, StartTimersError> {
        static SETS: AtomicU32 = AtomicU32::new(0);
        // Relaxed: it is a number that nobody else has.
        self.setup.set = SETS.fetch_add(1, Ordering::Relaxed) + 1;
        self.start_set()
    }

    /// The same for the set of the process, which has no number.
    pub(crate) fn start_set(mut self) -> Result<Timers, StartTimersError> {
        // See `back_off`. What a driver does between two handlers has its turn meanwhile.
        let limits = &mut self.setup.core.limits;
        match self.passes {
            Some(passes) => limits.passes = passes,
            None => (limits.passes, limits.backoff_max) = (DRIVER_PASSES, Ns::ZERO),
        }
        let host = Host::with_device(self.host_clock(), self.cpu_map(), self.device);
        let timers =
            Timers { shared: Handle::new(host, self.setup.clone(), Some(Process::this())) };
        let defers = self.setup.core.deferral != Deferral::None;
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

    /// Linux only. Starts timers on one base that an event loop of the program's drives: no thread
    /// of ours. The loop polls the driver, which is a file descriptor; see [`EventLoopDriver`].
    ///
    /// Arming a timer that is due before all others is one system call; nothing else is one.
    /// What concerns drivers' threads (pinning them, deferring expiry, ticking) is ignored.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Descriptor`] if the system refuses a timerfd.
    #[cfg(linux_platform)]
    pub fn start_in_loop(self) -> Result<(Timers, EventLoopDriver<Descriptor>), StartTimersError> {
        let (wakes_by, device) = Descriptor::new().map_err(StartTimersError::Descriptor)?;
        let timers = self.without_threads(vec![device]);
        let driver = EventLoopDriver::new(timers.shared.for_driver(), CpuId(0), wakes_by);
        Ok((timers, driver))
    }

    /// The same with as many bases as [`bases`](Builder::bases) said, or one a CPU, and a driver
    /// for each: for programs with a loop on each CPU.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Descriptor`] if the system refuses a timerfd.
    #[cfg(linux_platform)]
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
        on_rearm: impl Fn(Instant) + Send + Sync + 'static,
    ) -> (Timers, EventLoopDriver<Callback>) {
        let (wakes_by, device) = Callback::new(Box::new(move |next: Ns| on_rearm(next.into())));
        let timers = self.without_threads(vec![device]);
        let driver = EventLoopDriver::new(timers.shared.for_driver(), CpuId(0), wakes_by);
        (timers, driver)
    }

    /// Timers with these devices, one a base, and nobody who drives them yet.
    fn without_threads(mut self, devices: Vec<BaseDevice>) -> Timers {
        self.setup.core.deferral = Deferral::None;
        self.setup.core.wheel = WheelEvents::Device;
        self.setup.ticks = false;
        if let Some(passes) = self.passes {
            self.setup.core.limits.passes = passes;
        }
        let cpus = CpuMap::of_this_process().with_bases(devices.len() as u16);
        let host = Host::with_devices(self.host_clock(), cpus, devices);
        Timers { shared: Handle::new(host, self.setup.clone(), Some(Process::this())) }
    }

    fn host_clock(&self) -> HostClock {
        let clock = match self.clock {
            Clock::Best => HostClock::new(),
            Clock::System => HostClock::system(),
        };
        if let Some(why) = clock.take_new_fallback() {
            events::clock_fell_back(why);
        }
        clock
    }

    fn add_thread(&self, timers: &Timers, base: CpuId, job: Job) -> Result<(), StartTimersError> {
        let shared = timers.shared.for_driver();
        let cpu = match (self.pinning, job) {
            (Pinning::Free, _) | (_, Job::Rescuer) => None,
            (Pinning::OnItsCpu, _) => shared.bases.platform().cpus.cpu_of(base),
        };
        let name = match job {
            Job::Driver => shared.thread_name("tickless", Some(base)),
            Job::Expirer => shared.thread_name("tickless-x", Some(base)),
            Job::Rescuer => shared.thread_name("tickless-r", None),
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
        if !self.coarse_like_real {
            self.setup.core.coarse = CoarseExpiry::AtDeadline;
        }
        // Equal deadlines fire as they were armed.
        self.setup.core.push_out = PushOut::Eager;
        // As with a driver: nobody is starved, since time stands still.
        self.setup.core.limits.passes = self.passes.unwrap_or(u32::MAX);
        let cpus = match chance {
            Some(chance) => self.cpu_map().shuffled(chance),
            None => self.cpu_map(),
        };
        Timers { shared: Handle::new(Host::new(HostClock::manual(clock), cpus), self.setup, None) }
    }

    fn cpu_map(&self) -> CpuMap {
        let map = CpuMap::of_this_process();
        match self.bases {
            Some(bases) => map.with_bases(bases),
            None => map,
        }
    }
}
