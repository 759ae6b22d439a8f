//! When it is safe to free the memory of a timer.
//!
//! Generic over the platform, to let model checkers run this file. These functions do not check
//! whether they would wait forever: [`super::pinned`] chooses one that does not.

use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Bases, Family};
use tickless_core::link::TimerRef;
use tickless_core::platform::Platform;

/// What must happen to the memory of a timer that has been shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// No thread uses the memory any more: free it.
    Over,
    /// The timer's callback runs, and the caller must not wait: free the memory after its return.
    Runs,
    /// This is a forked child: the timer's driver was perhaps using the memory. Never free it.
    LeftByFork,
}

pub fn end<P: Platform, L: Family<P>>(bases: &Bases<P>, timer: TimerRef<P, L>) -> End {
    bases.shutdown_sync(timer);
    End::Over
}

pub fn end_or_leave<P: Platform, L: Family<P>>(bases: &Bases<P>, timer: TimerRef<P, L>) -> End {
    bases.shutdown(timer);
    if bases.is_running(timer) { End::Runs } else { End::Over }
}

/// Shuts a timer down inside its own callback, and detaches the callback from it.
pub fn end_own<P: Platform, L: Family<P>>(bases: &Bases<P>, timer: TimerRef<P, L>) -> Cancel {
    let found = bases.shutdown(timer);
    bases.detach(timer);
    found
}

/// Cancels a timer that only the caller arms, and waits for its callback. Inside that callback it
/// does not wait: `detach_own` detaches the callback and returns `true`.
#[inline]
pub fn disarm<P: Platform, L: Family<P>>(
    bases: &Bases<P>,
    timer: TimerRef<P, L>,
    detach_own: impl FnOnce() -> bool,
) -> Cancel {
    let found = bases.cancel(timer);
    if found == Cancel::Running && !detach_own() {
        bases.cancel_sync(timer);
    }
    found
}
