//! A thread that fires the timers of a runtime whose workers are blocked.

use super::driver::Event;
use super::{Current, RuntimeTimers, current};
use crate::builder::StartTimersError;
use crate::platform::locked::locked;
use crate::platform::runtime::Runtime;
use crate::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;
use tickless_core::time::CpuId;

/// A shorter wait than this is not worth a wakeup of a thread.
const LATE_MIN: Duration = Duration::from_millis(1);

/// Lets a driver thread of the process fire timers of the runtime that the caller is in when they
/// are late by `late` (at least 1 ms), because the worker that should fire them is blocked. The
/// thread wakes once in every `late` to check that, so it fires them before they are late by twice
/// as much. Another call changes `late`.
///
/// Tasks whose timers have fired run on other workers of the runtime, if it has any that are idle.
/// Outside of a runtime, this does nothing: the timers of the process have threads of their own. On
/// a paused clock nothing is late.
///
/// # Errors
///
/// [`StartTimersError`](crate::driver::StartTimersError) if the system refuses the threads of the
/// process's timers.
#[track_caller]
pub fn rescue_after(late: Duration) -> Result<(), StartTimersError> {
    let Current::Runtime(runtime) = current() else { return Ok(()) };
    let (late, timers) = (late.max(LATE_MIN), Arc::downgrade(&runtime));
    let event = Waker::from(Arc::new(Event(timers.clone())));
    let checks = process::start()?.hrtimer(move |fired| {
        if let Some(timers) = timers.upgrade() {
            timers.fire_late(late, &event);
            fired.restart(late);
        }
    });
    let checks = checks.labelled("tickless::tokio_time::rescue_after");
    // Fails only in a forked child, which has no driver threads.
    let _ = checks.start(late);
    let before = locked(&runtime.rescue).replace(checks);
    // Drop it without the lock, because its drop waits for a check that is running.
    drop(before);
    Ok(())
}

impl RuntimeTimers {
    /// Fires the due timers if the first is late by `late`, in place of the blocked worker.
    fn fire_late(&self, late: Duration, event: &Waker) {
        let due = self.timers.shared.bases.exact_next_event(CpuId(0));
        // Only the runtime moves a virtual clock.
        if self.clock.is_known_virtual() || due + late > self.clock.now() {
            return;
        }
        // Relaxed: `Driver::run` publishes the flag to the thread that fires.
        self.driver.are_late.store(true, Ordering::Relaxed);
        let _entered = self.clock.enter();
        self.fire(event);
    }
}
