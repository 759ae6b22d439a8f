//! How the timers of a set learn that a clock was set.

use crate::platform::device::fallback::RefusedCall;
use crate::platform::watch::StepSource;
#[cfg(linux_platform)]
use crate::platform::watcher::Watcher;
#[cfg(linux_platform)]
use crate::platform::worker::Worker;
use crate::timer::shared::Handle;
#[cfg(linux_platform)]
use std::sync::Arc;

impl Handle {
    /// Starts the reporting of steps, or makes timers poll their clock if that is not possible.
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

    /// Makes timers poll: only Linux reports steps.
    #[cfg(not(linux_platform))]
    fn start_watching(&self) -> Result<StepSource, RefusedCall> {
        Ok(StepSource::Polling)
    }

    /// Starts a thread that waits for steps.
    #[cfg(linux_platform)]
    fn start_watching(&self) -> Result<StepSource, RefusedCall> {
        let watcher = Arc::new(Watcher::new()?);
        let (shared, watched) = (self.for_driver(), Arc::clone(&watcher));
        let watch = move || {
            if let Err(why) = watched.watch(|| shared.clocks_stepped()) {
                // Convert all deadlines once more, so that timers start polling.
                shared.clock_timers.watch.fall_back(why);
                shared.clocks_stepped();
            }
        };
        let name = self.thread_name("tickless-c", None);
        self.add_driver(|| Worker::spawn(name, watch)).map_err(|error| {
            RefusedCall::with_code("clone", error.raw_os_error().unwrap_or_default())
        })?;
        self.clock_timers.watched_by(watcher);
        Ok(StepSource::Kernel)
    }
}
