//! The ends of a timer that somebody owns: when its memory may go.
//!
//! Over bases of any world, so that the model checkers run these very lines. What a caller must not
//! wait for it says itself: see [`super::pinned`].

use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{Bases, Family};
use tickless_core::link::TimerRef;
use tickless_core::platform::Platform;

/// What has become of a timer whose owner wants to be rid of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Nobody uses its memory, now or later.
    Over,
    /// Its callback runs, and the caller must not wait for that. Once it runs no more its memory
    /// may go.
    Runs,
    /// Its driver is not in this process, and nobody knows what it was doing.
    LeftByFork,
}

/// Shuts a timer down and waits for its callback.
pub fn end<P: Platform, L: Family<P>>(bases: &Bases<P>, timer: TimerRef<P, L>) -> End {
    bases.shutdown_sync(timer);
    End::Over
}

/// The same for a caller that must not wait.
pub fn end_or_leave<P: Platform, L: Family<P>>(bases: &Bases<P>, timer: TimerRef<P, L>) -> End {
    bases.shutdown(timer);
    if bases.is_running(timer) { End::Runs } else { End::Over }
}

/// Cancels a timer that only the caller arms, so that no driver knows it, and waits for its
/// callback. Not for one that runs beside an arming that is pending: see [`withdraw`]. If this is
/// its own callback it waits for nothing.
#[inline]
pub fn disarm<P: Platform, L: Family<P>>(
    bases: &Bases<P>,
    timer: TimerRef<P, L>,
    is_own_callback: impl FnOnce() -> bool,
) {
    if bases.cancel(timer) == Cancel::Running && !is_own_callback() {
        bases.cancel_sync(timer);
    }
}

/// The same, whatever was armed meanwhile.
pub fn withdraw<P: Platform, L: Family<P>>(
    bases: &Bases<P>,
    timer: TimerRef<P, L>,
    is_own_callback: impl FnOnce() -> bool,
) {
    if is_own_callback() {
        bases.cancel(timer);
    } else {
        bases.cancel_sync(timer);
    }
}
