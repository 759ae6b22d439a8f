//! What a runner (handler or expiry thread) passes to a callback, and what the callback returns.

use crate::link::{Link, TimerRef};
use crate::platform::Platform;
use crate::queues::wheel::{Wakes, WheelPlace};
use crate::state::FiresIn;
use crate::time::{CpuId, Ns, Tick, Window};
use core::ops::Deref;
use core::ptr::NonNull;

/// A timer that fires: what to run, and for which expiry.
#[derive(Debug)]
pub struct Firing<P: Platform> {
    /// The timer's address. Only the timer's owner knows whether it can be dereferenced.
    pub timer: NonNull<()>,
    /// What to run.
    pub task: P::Task,
    expiry: Expiry,
}

/// One expiry of a timer: everything that its callback can use.
#[derive(Debug)]
pub struct Expiry {
    /// The window with which the timer was armed. For a coarse timer both ends are the deadline.
    pub window: Window,
    /// Where a coarse timer was in the wheel.
    place: WheelPlace,
    /// Where the callback runs if expiry is deferred. A restart keeps this.
    pub fires_in: FiresIn,
    /// The time at which the handler found the timer due.
    pub now: Ns,
    /// How long `now` is after the soft end of the window.
    pub late: Ns,
    /// The base on which the timer fires.
    pub cpu: CpuId,
}

impl<P: Platform> Deref for Firing<P> {
    type Target = Expiry;

    #[inline]
    fn deref(&self) -> &Expiry {
        &self.expiry
    }
}

/// What a callback requests for its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallbackResult {
    /// Nothing. The timer has possibly been freed.
    Done,
    /// Restart the timer with this window; it stays deferrable, or not, as before. Does nothing if
    /// another thread has armed the timer (R9) or shut it down.
    Restart(Window),
}

impl<P: Platform> Firing<P> {
    /// Describes an expiry: `now` is when it was found, `place` where the timer was on the wheel.
    #[inline(always)]
    pub(super) fn of<L: Link>(
        timer: TimerRef<P, L>,
        window: Window,
        place: WheelPlace,
        fires_in: FiresIn,
        now: Ns,
        cpu: CpuId,
    ) -> Firing<P> {
        let (timer, task) = (timer.pointer(), timer.task());
        let late = now.since(window.soft);
        Firing { timer, task, expiry: Expiry { window, place, fires_in, now, late, cpu } }
    }
}

impl Expiry {
    /// Whether the timer wakes an idle CPU: a deferrable one does not. A restart keeps this.
    #[inline]
    pub fn wakes(&self) -> Wakes {
        self.place.wakes()
    }

    /// When bases with this tick should fire the timer: at the hard end of its window, or at the
    /// deadline as rounded by the wheel.
    #[inline]
    pub fn due(&self, tick: Tick) -> Ns {
        // `max`: if timers fire exactly at their deadlines, `place` has the time of the wheel's
        // clock, which is before the deadline.
        self.place.due(tick).max(self.window.hard)
    }

    /// Returns whether the timer fires more than `by` after it was due.
    #[inline]
    pub fn is_overdue(&self, by: Ns, tick: Tick) -> bool {
        // The first comparison is cheap, and usually false: then the second one is not made.
        self.late > by && self.now.since(self.due(tick)) > by
    }
}
