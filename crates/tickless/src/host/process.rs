//! The timers of the process: started when first used, and never stopped.

use super::fork::ProcessLock;
use crate::{Timers, timers::Handle};
use core::sync::atomic::{AtomicPtr, Ordering};

static TIMERS: AtomicPtr<Timers> = AtomicPtr::new(core::ptr::null_mut());

/// The timers of this process; `None` if they cannot be started just now.
///
/// A child of a fork gets some of its own when it first asks.
#[inline]
pub fn timers() -> Option<&'static Timers> {
    // Acquire: pairs with the Release in `start`.
    let timers = TIMERS.load(Ordering::Acquire);
    // SAFETY: what has been put there is never freed.
    match unsafe { timers.as_ref() } {
        Some(timers) if !timers.shared.is_forked_child() => Some(timers),
        _ => start(),
    }
}

/// The same as a handle.
#[inline]
pub fn handle() -> Option<&'static Handle> {
    timers().map(|timers| &timers.shared)
}

#[cold]
fn start() -> Option<&'static Timers> {
    static STARTING: ProcessLock<()> = ProcessLock::new(());
    let _one_at_a_time = STARTING.lock();
    let timers = TIMERS.load(Ordering::Acquire);
    // SAFETY: as in `timers`.
    if let Some(timers) = unsafe { timers.as_ref() }
        && !timers.shared.is_forked_child()
    {
        return Some(timers);
    }
    let timers = Box::leak(Box::new(Timers::start().ok()?));
    // Release: who finds it finds it whole.
    TIMERS.store(timers, Ordering::Release);
    Some(timers)
}
