//! The set of timers that the whole process shares: it starts with its first use, and never stops.

use crate::builder::{Builder, StartTimersError};
use crate::platform::per_process::PerProcess;
use crate::platform::system_clock::system_now;
use crate::timer::shared::Handle;
use crate::timers::Timers;
use tickless_core::time::Instant;

static TIMERS: PerProcess<Timers> = PerProcess::new();

/// Like [`timers`], but returns the error if the system refuses a thread.
pub(crate) fn start() -> Result<&'static Timers, StartTimersError> {
    let mut refused = None;
    let start = || Builder::new().start_for_process().map_err(|error| refused = Some(error)).ok();
    let timers = TIMERS.get(is_ours, start);
    timers.ok_or_else(|| refused.unwrap_or_else(|| unreachable!("`start` has failed")))
}

/// Returns the timers of this process, or of this forked child, and starts them if necessary.
#[inline]
pub(crate) fn timers() -> Option<&'static Timers> {
    TIMERS.get(is_ours, || Builder::new().start_for_process().ok())
}

fn is_ours(timers: &Timers) -> bool {
    !timers.shared.is_forked_child()
}

#[inline]
pub(crate) fn handle() -> Option<&'static Handle> {
    timers().map(|timers| &*timers.shared)
}

pub(crate) fn now() -> Instant {
    timers().map_or_else(|| system_now().into(), Timers::now)
}
