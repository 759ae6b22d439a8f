//! How timers are set up.

use crate::Timers;
use crate::host::clock::HostClock;
use crate::host::cpu::CpuMap;
use crate::host::fork::Process;
use crate::host::{Host, driver};
use crate::timers::PanicReporter;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tickless_core::base::Settings;
use tickless_core::rearm::{Limits, Policy};
use tickless_core::tick::Tick;
use tickless_core::time::{CpuId, Ns};
use tickless_core::wheel::PushOut;

/// Sets timers up; from [`Timers::builder`].
#[must_use = "a builder does nothing until `start` is called"]
pub struct Builder {
    pub(crate) core: Settings,
    bases: Option<u16>,
    clock: Clock,
    pinning: Pinning,
    pub(crate) on_panic: Option<Arc<PanicReporter>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    Best,
    System,
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
        }
    }
}

impl std::error::Error for StartTimersError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartTimersError::Thread { error, .. } => Some(error),
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
        // A driver is a thread among others: the system sees to it that it does not starve the
        // rest, so it never backs off.
        let limits = Limits { passes: u32::MAX, ..Limits::NONE };
        let core = Settings { limits, ..Settings::default() };
        Builder { core, bases: None, clock: Clock::Best, pinning: Pinning::Free, on_panic: None }
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

    /// When taking off the first timer programs the event device (seed 0).
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.core.policy = policy;
        self
    }

    /// How pending timeouts are pushed out.
    pub fn push_out(mut self, push_out: PushOut) -> Builder {
        self.core.push_out = push_out;
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

    /// Starts the timers and their driver threads.
    pub fn start(self) -> Result<Timers, StartTimersError> {
        let clock = match self.clock {
            Clock::Best => HostClock::new(),
            Clock::System => HostClock::system(),
        };
        let host = Host::new(clock, self.cpu_map());
        let timers = Timers::without_drivers(host, &self, Some(Process::this()));
        for base in 0..timers.shared.bases.count() {
            let base = CpuId(base as u16);
            let shared = timers.shared.for_driver();
            let cpu = match self.pinning {
                Pinning::Free => None,
                Pinning::OnItsCpu => shared.bases.platform().cpus.cpu_of(base),
            };
            let thread = std::thread::Builder::new()
                .name(format!("tickless/{}", base.0))
                .spawn(move || {
                    driver::sharpen_sleep();
                    if let Some(cpu) = cpu {
                        driver::stay_on(cpu);
                    }
                    shared.drive(base);
                })
                .map_err(|error| StartTimersError::Thread { base, error })?;
            timers.shared.add_driver(thread);
        }
        Ok(timers)
    }

    /// Timers that nobody drives, on a clock that stands at `now`.
    pub(crate) fn start_virtual(self, now: Ns) -> Timers {
        Timers::without_drivers(Host::new(HostClock::manual(now), self.cpu_map()), &self, None)
    }

    fn cpu_map(&self) -> CpuMap {
        let map = CpuMap::of_this_process();
        match self.bases {
            Some(bases) => map.with_bases(bases),
            None => map,
        }
    }
}
