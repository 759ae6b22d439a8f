//! Coarse timers: timeouts, which are armed by the million and seldom fire.

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
/// Fires never early, and late by at most 13 % of its distance plus a tick (1 ms unless
/// set otherwise). Pushing a pending one out takes no lock; all other operations take one
/// uncontended lock. Nothing is allocated, and there is no system call unless the new deadline
/// comes before everything that the base's sleeping driver waits for.
///
/// A pending timer that is pushed out stays on its base, whichever CPU asks, until it has fired or
/// is armed for an earlier time. Its driver may wake once at the old deadline, for nothing.
///
/// Dropping it cancels it and waits for a running callback to end. A callback that drops a timer,
/// its own or another, does not wait: if that one's callback is running it ends by itself, and
/// is dropped then.
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
    pinned: Option<CpuId>,
}

impl Timers {
    /// A coarse timer, not armed. Allocates once: 64 bytes if the closure captures up to 16.
    ///
    /// The callback runs on a driver thread.
    pub fn timeout<F>(&self, callback: F) -> Timeout
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        Timeout::new(self, callback)
    }
}

impl Timeout {
    pub(crate) fn new<F>(timers: &Timers, callback: F) -> Timeout
    where
        F: FnMut(&mut Fired<'_>) + Send + 'static,
    {
        Timeout::around(Owned::new(timers.shared.clone(), callback))
    }

    /// The same of an owner that must not be dropped.
    #[inline]
    pub(crate) fn lent(timer: ManuallyDrop<Owned<WheelLink>>) -> ManuallyDrop<Timeout> {
        ManuallyDrop::new(Timeout::around(ManuallyDrop::into_inner(timer)))
    }

    pub(crate) fn around(timer: Owned<WheelLink>) -> Timeout {
        Timeout { timer, wakes: Wakes::Yes, pinned: None }
    }

    /// Makes it deferrable: it fires with the first event of its base after its deadline, and
    /// never causes one. For work that can wait until somebody is awake anyway.
    pub fn deferrable(mut self) -> Timeout {
        self.wakes = Wakes::No;
        self
    }

    /// Pins it to one base, whichever CPU arms it. Arming fails if there is no such base.
    pub fn pinned(mut self, base: CpuId) -> Timeout {
        self.pinned = Some(base);
        self
    }

    /// Says whose it is, for [`Timers::timer_list`](crate::Timers::timer_list) and its like.
    /// Otherwise that is known by the callback's type. Takes a lock and may allocate, once.
    pub fn labelled(self, label: &'static str) -> Timeout {
        self.timer.set_label(label);
        self
    }

    /// Arms it, or arms it anew, to fire `after` the present. Reads the clock.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(now + after, now, IfPending::Rearm)
    }

    /// The same from a present that the caller has read a moment ago, with
    /// [`Timers::now`]: spares the clock. An old `now` makes the timer fire that much earlier,
    /// one that is yet to come that much later; other timers are unaffected by either.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_from(&self, now: Instant, after: Duration) -> Result<Started, StartError> {
        let now = Ns::from(now);
        self.arm(now + after, now, IfPending::Rearm)
    }

    /// Arms it, or arms it anew, for a point in time. One that has passed fires at once.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        self.arm(deadline.into(), self.timer.shared().now(), IfPending::Rearm)
    }

    /// Arms it, or, if it is pending, makes it earlier; never later.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn reduce(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        self.arm(now + after, now, IfPending::Reduce)
    }

    /// Cancels it without waiting for its callback. No lock if it is idle.
    ///
    /// [`Cancel::Running`] says that the callback may still be at work, and may still have the
    /// timer armed again, through [`Fired::restart`] and its like: a callback that does so has
    /// to be told otherwise. (A [`Periodic`](crate::Periodic) is.)
    #[inline]
    pub fn cancel(&self) -> Cancel {
        self.timer.cancel()
    }

    /// Cancels it, unless its callback is running: then this says so and changes nothing. No lock
    /// if it is idle.
    pub fn try_cancel(&self) -> Cancel {
        self.timer.try_cancel()
    }

    /// Cancels it and waits until its callback runs nowhere: then what the callback wrote can be
    /// seen, and what it uses can go. Says what it found when it came.
    ///
    /// If the callback is not running this costs what [`cancel`](Self::cancel) does. Otherwise
    /// it waits, a few microseconds awake and then asleep; an arming that comes meanwhile, the
    /// callback's own included, is cancelled too. The callback does not inherit the caller's
    /// priority. A thread that is made to end while it waits leaves nothing behind.
    ///
    /// A wait that would never end is an error; see [`CancelError`] for which can be seen.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    #[inline]
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_sync()
    }

    /// The same, a little cheaper, for a timer that nobody arms again while its callback runs,
    /// the callback included: if it is pending, nobody looks for the callback. If it was armed
    /// after all, this says so: [`CancelError::NotSingleShot`].
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    /// [`NotSingleShot`](CancelError::NotSingleShot) if it was armed again meanwhile.
    #[inline]
    pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_single_shot()
    }

    /// Cancels it for good and waits like [`cancel_sync`](Self::cancel_sync): every later arming
    /// is [`StartError::Shut`], whoever tries.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is shut down all the same.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.shutdown_sync()
    }

    /// Is it armed? May be out of date as soon as it is known.
    pub fn is_pending(&self) -> bool {
        self.timer.is_pending()
    }

    /// Is it armed, or its callback running?
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }

    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    fn arm(&self, deadline: Ns, now: Ns, pending: IfPending) -> Result<Started, StartError> {
        let window = Window::new(deadline, deadline);
        let options =
            Options { wakes: self.wakes, pinned: self.pinned, pending, ..Options::default() };
        self.timer.start(window, now, options)
    }
}
