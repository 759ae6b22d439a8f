//! How timers are set up; `starting` has how they are started.

mod start_error;
mod starting;

pub use start_error::StartTimersError;

use crate::timer::shared::Setup;
use crate::timers::Timers;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tickless_core::bases::{Deferral, Settings};
use tickless_core::rearm::Limits;
use tickless_core::time::{Ns, Tick};
use tickless_platform::device::fallback::Device;
use tickless_platform::wakeup::Wakeup;

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

/// May a driver thread move between CPUs?
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
    /// To start timers in another way: with other settings, or a set of one's own.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

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
}
