//! Chooses how the timers of a set learn that a clock was set (a step): from the kernel, from the
//! program that moves a virtual clock, or by polling.

use crate::platform::device::refused::RefusedCall;
use crate::platform::watch::StepSource;
#[cfg(linux_platform)]
use crate::platform::watcher::Watcher;
#[cfg(linux_platform)]
use crate::platform::worker::Worker;
use crate::timer::shared::Handle;
#[cfg(linux_platform)]
use std::sync::Arc;

impl Handle {
    /// Chooses how this set's timers find out that a clock was set, and starts a watch thread if it
    /// is needed. Later calls do nothing.
    pub(super) fn watch_clocks(&self) {
        self.clock_timers.watch.source(|| {
            if self.is_virtual() {
                return Ok(StepSource::Program);
            }
            match self.has_drivers() {
                true => self.start_watching(),
                false => Ok(StepSource::Polling),
            }
        });
    }

    /// Makes timers poll their clock: only Linux reports that a clock was set.
    #[cfg(not(linux_platform))]
    fn start_watching(&self) -> Result<StepSource, RefusedCall> {
        Ok(StepSource::Polling)
    }

    /// Starts a thread that waits until the kernel reports that the clock was set.
    #[cfg(linux_platform)]
    fn start_watching(&self) -> Result<StepSource, RefusedCall> {
        let watcher = Arc::new(Watcher::new()?);
        let (shared, watched) = (self.for_driver(), Arc::clone(&watcher));
        let watch = move || {
            if let Err(why) = watched.watch(|| shared.clocks_stepped()) {
                // From now on, no steps are reported, so each timer must check its clock once a
                // second. Convert all deadlines again: the new armings are for at most a second
                // ahead.
                shared.clock_timers.watch.fall_back(why);
                shared.clocks_stepped();
            }
        };
        let name = self.thread_name("tickless-c", None);
        self.add_driver(|| Worker::spawn(name, watch)).map_err(|error| RefusedCall {
            call: "clone",
            errno: error.raw_os_error().unwrap_or_default(),
        })?;
        self.clock_timers.watched_by(watcher);
        Ok(StepSource::Kernel)
    }
}
