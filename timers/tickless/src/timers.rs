//! All timers of a program: by default, for each CPU a base, which keeps the timers that are armed
//! there, and a driver, which fires them.

use crate::events;
use crate::platform::clock::ClockSource;
use crate::platform::clock_error::Fallback;
use crate::timer::shared::OpenSet;
use std::time::Duration;
use tickless_core::bases::migrate::OnlineError;
use tickless_core::phase::CircleView;
use tickless_core::time::{CpuId, Instant, Ns};

/// All timers of a program, or one of several separate sets. Cheap to clone.
///
/// The drivers stop when the last clone and the last timer are dropped. That drop waits until the
/// drivers, and with them any running callback, have ended. It does not wait for wakers. A drop
/// inside a callback or a waker does not wait.
///
/// # Fork
///
/// In a forked child the parent's timers are shut down: nothing fires, arming returns an error, a
/// cancel returns that the timer is idle, and a drop neither waits nor frees. The parent's timers
/// continue undisturbed. A child can start timers of its own, whatever its parent's threads were
/// doing. Their drivers are threads of the C library there, not of `std`, which cannot start
/// threads in every child: so a callback's thread has no name for `std`. A callback that forks must
/// not return in the child: it must call `exec` or `exit`. A child of `_Fork`, `vfork` or a bare
/// system call must use no timers.
///
/// ```
/// use std::time::Duration;
/// use tickless::Timers;
///
/// let timers = Timers::process()?; // the timers of this process
/// let keep_alive = timers.timeout(|_| println!("still there?"));
/// keep_alive.start(Duration::from_secs(30))?;
/// assert!(keep_alive.is_pending());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Timers {
    pub(crate) shared: OpenSet,
}

impl Timers {
    /// Returns the current time on the clock that deadlines refer to. Costs about 11 ns if that
    /// clock is the CPU's time stamp counter.
    #[inline]
    pub fn now(&self) -> Instant {
        self.shared.now().into()
    }

    /// Returns where [`now`](Timers::now) comes from.
    pub fn clock_source(&self) -> ClockSource {
        self.shared.bases.platform().clock.source()
    }

    /// Returns why the timers use the system's clock, not the CPU's counter, from the start or
    /// since the counter became unsteady. `None` if they use the counter, or the program chose the
    /// clock.
    pub fn clock_fallback(&self) -> Option<Fallback> {
        self.shared.bases.platform().clock.fallback()
    }

    /// Returns how many running timers have this `period` and a [`Phase`](crate::periodic::Phase).
    /// Takes a lock. O(log n) for n timers with phases.
    pub fn phase_count(&self, period: Duration) -> usize {
        self.phases_of(period).map_or(0, |view| view.timers)
    }

    /// Returns the longest gap between two successive expiries of the timers that
    /// [`phase_count`](Timers::phase_count) counts, rounded up to a nanosecond; `None` if there are
    /// no such timers. Takes a lock. O(log n) for n timers with phases.
    pub fn phase_gap(&self, period: Duration) -> Option<Duration> {
        Some(self.phases_of(period)?.gap_max)
    }

    fn phases_of(&self, period: Duration) -> Option<CircleView> {
        let is_forked_child = self.shared.is_forked_child();
        (!is_forked_child).then(|| self.shared.phases().view(Ns::from_duration(period)))?
    }

    /// Takes a base out of use, as the kernel does when a CPU goes offline. Its timers, and those
    /// armed later, go to the next base that is online, pinned ones included. Returns how many
    /// timers moved. A timer whose callback runs stays until that has returned.
    ///
    /// # Errors
    ///
    /// [`OnlineError`] if there is no such base, or it is the last one that is online.
    pub fn offline(&self, base: CpuId) -> Result<u64, OnlineError> {
        if self.shared.is_forked_child() {
            return Ok(0);
        }
        let moved = self.shared.bases.offline(base)?;
        events::offline(base, moved);
        Ok(moved)
    }

    /// Puts a base into use again. New armings can go to it; timers that have left do not return.
    ///
    /// # Errors
    ///
    /// [`OnlineError`] if there is no such base.
    pub fn online(&self, base: CpuId) -> Result<(), OnlineError> {
        if self.shared.is_forked_child() {
            return Ok(());
        }
        self.shared.bases.online(base)?;
        events::online(base);
        Ok(())
    }
}
