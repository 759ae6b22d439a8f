//! Coarse timers, for timeouts: a program can arm millions of them, of which few fire.

use crate::methods::timer_methods;
use crate::platform::host::WheelLink;
use crate::timer::cancel_error::CancelError;
use crate::timer::fired::Fired;
use crate::timer::owned::Owned;
use crate::timers::Timers;
use std::mem::ManuallyDrop;
use std::time::Duration;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::{IfPending, Options, StartError, Started};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Instant, Ns, Window};

/// A coarse timer with its callback; from [`Timers::timeout`].
///
/// It never fires early, and is late by at most 13 % of the time from arming to the deadline, plus
/// a tick (1 ms by default). Moving the deadline of a pending timeout to a later time ("pushing
/// out") takes no lock; all other operations take one uncontended lock. No operation allocates.
/// Arming makes a system call only if the base's driver sleeps past the new deadline. A timeout
/// that is pushed out, from any CPU, stays on its base; the driver perhaps wakes once at the old
/// deadline.
///
/// Dropping a timer cancels it and waits until its callback has returned. A drop inside any
/// callback does not wait: if the timer's callback is running, it completes and is then freed.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::callback::{Cancel, Started};
///
/// let time = VirtualTime::new();
/// let idle = time.timers().timeout(|_| println!("closing an idle connection"));
/// assert_eq!(idle.start(Duration::from_secs(30))?, Started::Idle);
/// assert_eq!(idle.start(Duration::from_secs(60))?, Started::Pending, "pushed out");
/// assert_eq!(idle.cancel(), Cancel::Pending);
/// # Ok::<(), tickless::callback::StartError>(())
/// ```
#[must_use = "dropping a timer cancels it"]
#[derive(Debug)]
pub struct Timeout {
    pub(crate) timer: Owned<WheelLink>,
    wakes: Wakes,
    /// Whether the settings beside this one are the default.
    is_usual: bool,
    pinned: Option<CpuId>,
}

impl Timers {
    /// Creates a coarse timer, not armed. Allocates once: 64 bytes if the closure captures at most
    /// 16 bytes.
    pub fn timeout<F>(&self, callback: F) -> Timeout
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        Timeout::around(Owned::new(self.shared.handle(), callback))
    }
}

impl Timeout {
    pub(crate) fn around(timer: Owned<WheelLink>) -> Timeout {
        Timeout { timer, wakes: Wakes::Yes, is_usual: true, pinned: None }
    }

    /// Makes the timer deferrable: it never wakes the driver of its base, but fires when the driver
    /// first wakes for another reason after the timer's deadline.
    pub fn deferrable(mut self) -> Timeout {
        self.wakes = Wakes::No;
        self.is_usual = false;
        self
    }

    /// Pins the timer to one base, whichever CPU arms it. Arming fails if there is no such base.
    pub fn pinned(mut self, base: CpuId) -> Timeout {
        self.pinned = Some(base);
        self.is_usual = false;
        self
    }

    /// Returns whether [`start_fast`](Self::start_fast) can arm the timer.
    #[doc(hidden)]
    pub fn is_usual(&self) -> bool {
        self.is_usual
    }

    /// Returns the time at which the counter of the CPU had this value, which the caller has just
    /// read, if that needs no call. For the C interface.
    #[doc(hidden)]
    #[inline(always)]
    pub fn try_time_of(&self, count: u64) -> Option<Instant> {
        self.timer.shared().bases.platform().clock.try_time_of(count).map(Instant::from)
    }

    /// Pushes a pending [usual](Self::is_usual) timer out without a lock, or returns `false`. For
    /// the C interface.
    #[doc(hidden)]
    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push_out_fast(&self, now: Instant, deadline: Instant) -> bool {
        self.timer.push_out_fast(Window::at(deadline.to_ns()), now.to_ns())
    }

    /// Arms an idle [usual](Self::is_usual) timer, if no other thread uses its base. Otherwise
    /// returns `false` and changes nothing. For the C interface.
    #[doc(hidden)]
    #[inline(always)]
    pub fn start_fast(&self, now: Instant, deadline: Instant) -> bool {
        self.timer.start_fast(Window::at(deadline.to_ns()), now.to_ns())
    }

    /// Cancels a pending timer, if that needs no call. For the C interface.
    #[doc(hidden)]
    #[inline(always)]
    pub fn cancel_fast(&self) -> bool {
        self.timer.cancel_fast()
    }

    #[inline]
    fn window(&self, deadline: Ns) -> Window {
        Window::at(deadline)
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    fn arm(&self, window: Window, now: Ns, pending: IfPending) -> Result<Started, StartError> {
        if self.is_usual && pending == IfPending::Rearm {
            return self.timer.start(window, now);
        }
        let (wakes, pinned) = (self.wakes, self.pinned);
        self.timer.start_with(window, now, Options { wakes, pinned, pending, ..Options::default() })
    }
}

timer_methods!(Timeout, WheelLink, #[inline(always)]);
