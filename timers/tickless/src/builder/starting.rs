//! Starts a set of timers: with driver threads, in the program's event loop, or in virtual time.

use super::{Builder, Pinning, StartTimersError};
use crate::event_loop::EventLoopDriver;
use crate::platform::chance::Chance;
use crate::platform::clock::HostClock;
use crate::platform::cpu::CpuMap;
use crate::platform::device::base::BaseDevice;
use crate::platform::device::futex::Starter;
use crate::platform::device::own_loop::LoopDevice;
#[cfg(linux_platform)]
use crate::platform::device::refused::RefusedCall;
#[cfg(linux_platform)]
use crate::platform::device::timerfd::Timerfd;
use crate::platform::driver;
use crate::platform::manual_clock::ManualClock;
#[cfg(feature = "tokio-time")]
use crate::platform::runtime::Runtime;
use crate::platform::worker::Worker;
use crate::timer::glue::Host;
use crate::timer::shared::{Lifetime, OpenSet, Shared};
use crate::timers::Timers;
use std::io;
#[cfg(linux_platform)]
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tickless_core::bases::{CoarseExpiry, Deferral, WheelEvents};
use tickless_core::queues::wheel::PushOut;
use tickless_core::time::{CpuId, Instant, Ns};

/// How many times in a row virtual time runs the due timers of one base before it continues with
/// the next base. Without a limit, a timer that rearms itself for the current instant would keep
/// virtual time at this base.
const VIRTUAL_PASSES: u32 = 1_024;
/// How many times in a row a driver thread runs the due timers of its base before it returns to its
/// main loop, which costs a system call.
const DRIVER_PASSES: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    Driver,
    Expirer,
    Rescuer,
    Starter,
}

impl Builder {
    /// Starts a set of timers. The driver thread of the first base starts at once, that of another
    /// base when a timer is first armed on it. With [`expiry_threads`](Builder::expiry_threads),
    /// all drivers start at once. Threads are named after the number of the set, counted from 1,
    /// and of the base: `tickless/1.0`.
    ///
    /// If the system refuses a driver thread later, the base goes
    /// [offline](crate::Timers::offline), and its timers move to another base, until a later
    /// attempt to start the thread succeeds.
    ///
    /// Blocks for about half a millisecond, to calibrate the clock.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Thread`] if the system refuses a thread.
    pub fn start(mut self) -> Result<Timers, StartTimersError> {
        static SETS: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the number only has to be unique.
        self.setup.set = SETS.fetch_add(1, Ordering::Relaxed) + 1;
        self.start_set()
    }

    /// Starts the set that the whole process shares, which never ends.
    pub(crate) fn start_for_process(mut self) -> Result<Timers, StartTimersError> {
        self.setup.lifetime = Lifetime::Process;
        self.start_set()
    }

    /// Starts the set, and all its threads unless bases start their drivers on first use.
    fn start_set(mut self) -> Result<Timers, StartTimersError> {
        // By default, a driver returns to its main loop after `DRIVER_PASSES` passes and does not
        // pause (see `Builder::back_off`): a back-off of zero disables the pause.
        let limits = &mut self.setup.core.limits;
        match self.passes {
            Some(passes) => limits.passes = passes,
            None => (limits.passes, limits.backoff_max) = (DRIVER_PASSES, Ns::ZERO),
        }
        let (cpus, defers) = (self.cpu_map(), self.setup.core.deferral != Deferral::None);
        let starter = (!defers && !self.setup.ticks)
            .then(Arc::<Starter>::default)
            .filter(|_| cpus.bases() > 1);
        let host = match &starter {
            Some(starter) => Host::with_starter(self.host_clock(), cpus, starter),
            None => Host::new(self.host_clock(), cpus),
        };
        let timers = Timers { shared: OpenSet::new(host, self.setup.clone()) };
        if starter.is_some() {
            self.add_thread(&timers, CpuId(0), Job::Driver)?;
            self.add_thread(&timers, CpuId(0), Job::Starter)?;
            return Ok(timers);
        }
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

    /// Linux only. Starts timers on one base that the program's event loop drives. The loop polls
    /// the driver, which is a file descriptor; see [`EventLoopDriver`]. Settings of driver threads
    /// are ignored. Only arming a timer that is due before all others makes a system call.
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Descriptor`] if the system refuses a timerfd.
    #[cfg(linux_platform)]
    pub fn start_in_loop(
        self,
    ) -> Result<(Timers, EventLoopDriver<Arc<OwnedFd>>), StartTimersError> {
        let (descriptor, device) = polled_device()?;
        let clock = self.host_clock();
        Ok(self.in_one_loop(clock, device, descriptor))
    }

    /// Like [`start_in_loop`](Builder::start_in_loop), with as many bases as
    /// [`bases`](Builder::bases) sets, or one per CPU, and a driver for each.
    ///
    /// # Errors
    ///
    /// Fails as [`start_in_loop`](Builder::start_in_loop) does.
    #[cfg(linux_platform)]
    #[expect(clippy::type_complexity, reason = "an alias would be one more name to look up")]
    pub fn start_in_loops(
        self,
    ) -> Result<(Timers, Vec<EventLoopDriver<Arc<OwnedFd>>>), StartTimersError> {
        let bases = self.cpu_map().bases();
        let made: Result<Vec<_>, _> = (0..bases).map(|_| polled_device()).collect();
        let (descriptors, devices): (Vec<_>, Vec<_>) = made?.into_iter().unzip();
        let clock = self.host_clock();
        let timers = self.without_threads(clock, devices);
        let driver = |(base, descriptor)| {
            EventLoopDriver::new(timers.shared.for_driver(), CpuId(base as u16), descriptor)
        };
        let drivers = descriptors.into_iter().enumerate().map(driver).collect();
        Ok((timers, drivers))
    }

    /// Like [`start_in_loop`](Builder::start_in_loop), but for a loop that does not poll a
    /// descriptor: it limits its wait to the driver's [`timeout`](EventLoopDriver::timeout).
    ///
    /// When a timer is armed that is due before what [`next_event`](EventLoopDriver::next_event) or
    /// `timeout` last returned, the arming thread, which can be the loop's own, calls `on_rearm`
    /// with the new deadline. `on_rearm` must make a waiting loop ask for the next event again, for
    /// instance by an eventfd. It can be called more often than needed, by several threads at once,
    /// and must not panic. It is not called from the start of a [`run`](EventLoopDriver::run) until
    /// the loop asks for the next event.
    pub fn start_in_loop_with(
        self,
        on_rearm: impl Fn(Instant) + Send + Sync + 'static,
    ) -> (Timers, EventLoopDriver<()>) {
        let device = LoopDevice::with_callback(Box::new(move |next: Ns| on_rearm(next.into())));
        let clock = self.host_clock();
        self.in_one_loop(clock, BaseDevice::own_loop(device), ())
    }

    /// Starts a set of one base, and returns the driver for the program's event loop.
    fn in_one_loop<W>(
        self,
        clock: HostClock,
        device: BaseDevice,
        wakes_by: W,
    ) -> (Timers, EventLoopDriver<W>) {
        let timers = self.without_threads(clock, vec![device]);
        let driver = EventLoopDriver::new(timers.shared.for_driver(), CpuId(0), wakes_by);
        (timers, driver)
    }

    /// Starts timers on one base, on the clock of an async runtime; a task of the runtime drives
    /// them. If tests advance the clock, timers fire at their deadlines, in order of arming.
    #[cfg(feature = "tokio-time")]
    pub(crate) fn start_in_runtime(
        mut self,
        runtime: Arc<dyn Runtime>,
        device: LoopDevice,
    ) -> (Timers, EventLoopDriver<()>) {
        if runtime.is_virtual() {
            self.setup.core.coarse = CoarseExpiry::AtDeadline;
            self.setup.core.push_out = PushOut::Eager;
        }
        self.in_one_loop(HostClock::of_runtime(runtime), BaseDevice::own_loop(device), ())
    }

    /// Starts a set whose bases, one for each device, are driven by the caller.
    fn without_threads(mut self, clock: HostClock, devices: Vec<BaseDevice>) -> Timers {
        self.setup.core.deferral = Deferral::None;
        self.setup.core.wheel = WheelEvents::Device;
        self.setup.ticks = false;
        if let Some(passes) = self.passes {
            self.setup.core.limits.passes = passes;
        }
        let cpus = CpuMap::of_this_process().with_bases(devices.len() as u16);
        let host = Host::with_devices(clock, cpus, devices);
        Timers { shared: OpenSet::new(host, self.setup.clone()) }
    }

    /// Returns the clock of the set. If the CPU's counter cannot be used, a driver emits the event:
    /// the caller of this holds a lock if it starts the timers of the process.
    fn host_clock(&self) -> HostClock {
        if self.reads_system_clock { HostClock::system() } else { HostClock::new() }
    }

    fn add_thread(&self, timers: &Timers, base: CpuId, job: Job) -> Result<(), StartTimersError> {
        let added = add_thread(&timers.shared.for_driver(), self.pinning, base, job);
        added.map_err(|error| StartTimersError::Thread { base, error })
    }

    /// Creates a set on this virtual clock. With `chance`, each timer goes to a random base.
    pub(crate) fn start_virtual(
        mut self,
        clock: Arc<ManualClock>,
        chance: Option<Arc<Chance>>,
    ) -> Timers {
        if !self.coarse_like_real {
            self.setup.core.coarse = CoarseExpiry::AtDeadline;
        }
        // Move a timer to its new bucket at once when its deadline is made later: timers with equal
        // deadlines must fire in the order of their arming.
        self.setup.core.push_out = PushOut::Eager;
        // Limit the number of passes in a row, to detect a timer that is always rearmed for the
        // current instant. Disable the back-off: it would never end, because virtual time does not
        // advance on its own.
        let limits = &mut self.setup.core.limits;
        match self.passes {
            Some(passes) => limits.passes = passes,
            None => (limits.passes, limits.backoff_max) = (VIRTUAL_PASSES, Ns::ZERO),
        }
        let cpus = match chance {
            Some(chance) => self.cpu_map().shuffled(chance),
            None => self.cpu_map(),
        };
        Timers { shared: OpenSet::new(Host::new(HostClock::manual(clock), cpus), self.setup) }
    }

    fn cpu_map(&self) -> CpuMap {
        let map = CpuMap::of_this_process();
        match self.bases {
            Some(bases) => map.with_bases(bases),
            None => map,
        }
    }
}

/// Creates the event device of a base, with the descriptor that the program's loop polls.
#[cfg(linux_platform)]
fn polled_device() -> Result<(Arc<OwnedFd>, BaseDevice), RefusedCall> {
    let timer = Timerfd::new()?;
    let descriptor = timer.descriptor();
    Ok((descriptor, BaseDevice::own_loop(LoopDevice::with_descriptor(timer))))
}

/// Starts a thread of the set. The rescuer and the starter serve all bases, and run on any CPU.
fn add_thread(shared: &Arc<Shared>, pinning: Pinning, base: CpuId, job: Job) -> io::Result<()> {
    let own = Arc::clone(shared);
    let cpu = match (pinning, job) {
        (Pinning::Free, _) | (_, Job::Rescuer | Job::Starter) => None,
        (Pinning::OnItsCpu, _) => shared.bases.platform().cpus.cpu_of(base),
    };
    let name = match job {
        Job::Driver => shared.thread_name("tickless", Some(base)),
        Job::Expirer => shared.thread_name("tickless-x", Some(base)),
        Job::Rescuer => shared.thread_name("tickless-r", None),
        Job::Starter => shared.thread_name("tickless-s", None),
    };
    let work = move || {
        driver::sharpen_sleep();
        match cpu {
            Some(cpu) => driver::stay_on(cpu),
            None => own.bases.platform().cpus.roam(),
        }
        match job {
            Job::Driver => own.drive(base),
            Job::Expirer => own.serve(base),
            Job::Rescuer => own.rescue(),
            Job::Starter => start_drivers(&own, pinning),
        }
    };
    shared.add_driver(|| Worker::spawn(name, work))
}

const RETRY: Ns = Ns::from_ms(100);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driver {
    None,
    /// The system refused the thread, so the base was taken offline.
    Refused,
    Started,
}

/// The body of the starter thread: starts the driver thread of each base when the base is first
/// used. Returns when the set ends, or when all bases have drivers. If the system refuses a thread,
/// the base goes offline until a later attempt succeeds.
fn start_drivers(shared: &Arc<Shared>, pinning: Pinning) {
    let host = shared.bases.platform();
    let Some(starter) = &host.starter else { return };
    let mut drivers = vec![Driver::None; host.devices.len()];
    drivers[0] = Driver::Started;
    loop {
        // Read the starter's number of calls before looking at the bases: if a base is used for the
        // first time in between, its call changes the number, and the wait below returns at once.
        let calls = starter.calls();
        if shared.is_stopped() {
            return;
        }
        let mut until = Ns::NEVER;
        for ((base, device), driver) in (0..).map(CpuId).zip(&host.devices).zip(&mut drivers) {
            if *driver == Driver::Started || device.bell().rings() == 0 {
                continue;
            }
            if add_thread(shared, pinning, base, Job::Driver).is_ok() {
                if *driver == Driver::Refused {
                    let _ = shared.bases.online(base);
                }
                *driver = Driver::Started;
            } else {
                if shared.bases.offline(base).is_ok() {
                    *driver = Driver::Refused;
                }
                until = shared.now().after(RETRY);
            }
        }
        if drivers.iter().all(|driver| *driver == Driver::Started) {
            shared.detach_this_thread();
            return;
        }
        starter.wait(calls, until);
    }
}
