//! `Builder`: the settings with which a set of timers starts, such as its number of bases, its
//! clock, and what its driver threads sleep on. The submodule `starting` starts the set.

mod start_error;
mod starting;

pub use start_error::StartTimersError;

use crate::platform::wakeup::Wakeup;
use crate::timer::shared::{Lifetime, Setup};
use crate::timers::Timers;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bases::{Deferral, Settings};
use tickless_core::rearm::Limits;
use tickless_core::time::{Ns, Tick};

/// Settings of a set of timers; from [`Timers::builder`].
///
/// ```
/// use std::time::Duration;
/// use tickless::Timers;
/// use tickless::time::Tick;
///
/// let timers = Timers::builder()
///     .bases(1)
///     .tick(Tick::new(Duration::from_micros(100)).ok_or("no such tick")?)
///     .slow_after(Duration::from_millis(10))
///     .on_panic(|_| eprintln!("a callback panicked"))
///     .start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until `start` is called"]
pub struct Builder {
    pub(crate) setup: Setup,
    bases: Option<u16>,
    reads_system_clock: bool,
    /// After how many passes over its due timers, in a row, a driver backs off (see `back_off`);
    /// `None` for the default, which depends on what drives the timers.
    passes: Option<u32>,
    pinning: Pinning,
    coarse_like_real: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pinning {
    Free,
    #[cfg_attr(not(linux_platform), expect(dead_code, reason = "nothing pins threads there"))]
    OnItsCpu,
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
    /// Creates a builder, for a set of timers with its own settings, separate from the set that
    /// [`Timers::process`] returns.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Creates a builder with the defaults: a base per CPU, a tick of 1 ms, and the CPU's time
    /// stamp counter as the clock if it is reliable.
    pub fn new() -> Builder {
        let limits = Limits { tolerance: Ns::from_ms(1), ..Limits::NONE };
        let core = Settings { limits, patience: Ns::from_ms(100), ..Settings::default() };
        let setup = Setup {
            core,
            set: 0,
            lifetime: Lifetime::Users,
            ticks: false,
            wakeup: Wakeup::default(),
            on_panic: None,
            times_callbacks: false,
            slow_after: Ns::from_ms(100),
            notes_armings: false,
        };
        Builder {
            setup,
            bases: None,
            reads_system_clock: false,
            passes: None,
            pinning: Pinning::Free,
            coarse_like_real: false,
        }
    }

    /// Sets the number of bases, at least one. A base is a queue of timers with its own lock and,
    /// once a timer is armed on it, its own driver thread. More bases than CPUs bring no benefit.
    pub fn bases(mut self, count: u16) -> Builder {
        self.bases = Some(count);
        self
    }

    /// Sets the tick of coarse timers, 1 µs to 1 s. With a shorter tick timeouts are less late,
    /// but wake drivers more often.
    pub fn tick(mut self, tick: Tick) -> Builder {
        self.setup.core.tick = tick;
        self
    }

    /// Sets how driver threads wake up in time for a deadline; the default is [`Wakeup::Sleep`].
    ///
    /// This applies to every wakeup of a driver thread, and so also to coarse timeouts and the ends
    /// of windows. Give slack to timers that need not be punctual, so that they share wakeups, or
    /// put them into a set of their own, so that no driver spins for them. A program's event loop
    /// and virtual time ignore this setting. [`BaseStats::spun`](crate::stats::BaseStats::spun)
    /// counts the time that drivers have spun.
    pub fn wakeup(mut self, wakeup: Wakeup) -> Builder {
        self.setup.wakeup = wakeup;
        self
    }

    /// Sets the least time from the moment at which a timer is armed, or a driver has woken, to the
    /// driver's next wakeup; 0 by default. A timer that is due earlier is late by at most this.
    pub fn min_delta(mut self, delta: Duration) -> Builder {
        self.setup.core.limits.min_delta = Ns::from_duration(delta);
        self
    }

    /// Sets the longest sleep of a driver while any timer is pending, at least a microsecond. By
    /// default there is no limit.
    pub fn max_delta(mut self, delta: Duration) -> Builder {
        self.setup.core.limits.max_delta = Ns::from_duration(delta).max(Ns::from_us(1));
        self
    }

    /// Makes a driver pause if it cannot catch up: after this many passes over its timers (at least
    /// one) in a row that each found timers due, it waits for as long as the passes took, at most
    /// `longest`. [`DeviceCounts::hangs`](crate::stats::DeviceCounts::hangs) counts these pauses.
    /// By default a driver thread never pauses, and an event loop pauses after 3 passes, for at
    /// most 100 ms.
    pub fn back_off(mut self, passes: u32, longest: Duration) -> Builder {
        self.passes = Some(passes.max(1));
        self.setup.core.limits.backoff_max = Ns::from_duration(longest);
        self
    }

    /// Starts an expiry thread for each base, which runs the callbacks of timeouts and of precise
    /// timers that are [`deferred`](crate::HrTimer::deferred), so that a slow one does not delay
    /// timers that fire in the driver. Each batch of expiries costs a wakeup of the thread.
    pub fn expiry_threads(mut self) -> Builder {
        self.setup.core.deferral = Deferral::OnExpiry;
        self
    }

    /// Sets how long an expiry thread can be stuck in a callback before a rescuer thread fires the
    /// other timers of that base; 100 ms by default. All bases share one rescuer.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.setup.core.patience = Ns::from_duration(patience);
        self
    }

    /// Always reads the time with the system's `CLOCK_MONOTONIC`, even if the TSC, the CPU's time
    /// stamp counter, is reliable enough to be read directly.
    pub fn system_clock(mut self) -> Builder {
        self.reads_system_clock = true;
        self
    }

    /// Linux only. Keeps each driver thread on its base's CPU. This uses caches better, but timers
    /// are later if other threads keep that CPU busy.
    #[cfg(linux_platform)]
    pub fn pin_drivers(mut self) -> Builder {
        self.pinning = Pinning::OnItsCpu;
        self
    }

    /// Sets a function that is called, on the driver thread, with the payload of a callback's
    /// panic. The function is allowed to drop the timer whose callback panicked; its own panics are
    /// ignored. A program built with `panic = "abort"` ends instead, without calling the function.
    pub fn on_panic(
        mut self,
        reporter: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static,
    ) -> Builder {
        self.setup.on_panic = Some(Arc::new(reporter));
        self
    }

    /// Measures how long each callback takes, for
    /// [`Stats::callbacks`](crate::stats::Stats::callbacks). Costs two readings of the clock and a
    /// lock per callback, about 40 ns.
    pub fn time_callbacks(mut self) -> Builder {
        self.setup.times_callbacks = true;
        self
    }

    /// Sets the limit above which a callback counts as slow, if
    /// [`time_callbacks`](Self::time_callbacks) is set, and the lateness above which an expiry
    /// counts as overdue; 100 ms by default. An expiry is overdue because another callback or a
    /// busy CPU has delayed its driver. With the feature `tracing`, slow callbacks and overdue
    /// expiries emit warnings.
    pub fn slow_after(mut self, limit: Duration) -> Builder {
        self.setup.slow_after = Ns::from_duration(limit);
        self
    }

    /// In debug builds, records where each timer was last armed, for [`Timers::leaks`] and
    /// [`Timers::timer_list`]. Each arming then takes a lock that all timers share.
    pub fn note_armings(mut self) -> Builder {
        self.setup.notes_armings = true;
        self
    }

    /// Makes coarse timers on [`VirtualTime`](crate::VirtualTime) as late as on a real clock. By
    /// default they fire exactly at their deadlines there. Timers on a real clock ignore this.
    pub fn coarse_like_real(mut self) -> Builder {
        self.coarse_like_real = true;
        self
    }
}
