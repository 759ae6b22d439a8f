//! The timers of the process: started when first used, and never stopped.

use crate::builder::{Builder, StartTimersError};
use crate::platform::per_process::PerProcess;
use crate::timer::shared::Handle;
use crate::timers::Timers;

impl Timers {
    /// The timers of this process, which [`future`](crate::future) uses too: a base and a driver
    /// thread for each CPU that the process may use. The first call starts them, which blocks for
    /// about a millisecond to calibrate the clock; they run until the process ends.
    ///
    /// For a separate set, with other settings or with drivers that end, see
    /// [`builder`](Timers::builder).
    ///
    /// # Errors
    ///
    /// [`StartTimersError::Thread`] if the system refuses a thread.
    pub fn start() -> Result<Timers, StartTimersError> {
        match timers() {
            Some(timers) => Ok(timers.clone()),
            // Asks once more, to learn why.
            None => Builder::new().start_set(),
        }
    }
}

static TIMERS: PerProcess<Timers> = PerProcess::new();

/// The timers of this process; `None` if they cannot be started just now.
///
/// A child of a fork gets some of its own when it first asks.
#[inline]
pub(crate) fn timers() -> Option<&'static Timers> {
    TIMERS.get(|timers| !timers.shared.is_forked_child(), || Builder::new().start_set().ok())
}

/// The same as a handle.
#[inline]
pub(crate) fn handle() -> Option<&'static Handle> {
    timers().map(|timers| &timers.shared)
}
