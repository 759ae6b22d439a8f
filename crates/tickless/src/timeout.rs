//! Coarse timers, for timeouts: a program may arm millions of them, of which few fire.

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
/// Arming makes a system call only if the base's driver sleeps and the new deadline is earlier than
/// the one it waits for.
///
/// A pending timeout that is pushed out, from any CPU, stays on its base until it fires or is armed
/// for an earlier time. The driver may wake once at the old deadline without firing it.
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
    /// The options for arming the timer. Each arming method sets the field `pending` to its own
    /// constant, so that moving the deadline to a later time does not require a check of it.
    options: Options,
}

impl Timers {
    /// Creates a coarse timer, not armed. Allocates once: 64 bytes if the closure captures at most
    /// 16 bytes.
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
        Timeout::around(Owned::new(timers.shared.handle(), callback))
    }

    /// Makes a timeout of an owner that must not be dropped, so the timeout must not be dropped
    /// either.
    #[inline]
    pub(crate) fn lent(timer: ManuallyDrop<Owned<WheelLink>>) -> ManuallyDrop<Timeout> {
        ManuallyDrop::new(Timeout::around(ManuallyDrop::into_inner(timer)))
    }

    pub(crate) fn around(timer: Owned<WheelLink>) -> Timeout {
        Timeout { timer, options: Options::default() }
    }

    /// Makes the timer deferrable: it fires with the first event of its base after its deadline,
    /// and never causes one. This is for work that can wait until the driver wakes for another
    /// timer.
    pub fn deferrable(mut self) -> Timeout {
        self.options.wakes = Wakes::No;
        self
    }

    /// Pins the timer to one base, whichever CPU arms it. Arming fails if there is no such base.
    pub fn pinned(mut self, base: CpuId) -> Timeout {
        self.options.pinned = Some(base);
        self
    }

    /// Labels the timer. [`Timers::timer_list`](crate::Timers::timer_list) and
    /// [`leaks`](crate::Timers::leaks) show the label, or the type of the callback if there is
    /// none. Takes a lock and may allocate, once.
    pub fn labelled(self, label: &'static str) -> Timeout {
        self.timer.set_label(label);
        self
    }

    /// Arms or rearms the timer to fire when `after` has passed. Reads the clock.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        let options = Options { pending: IfPending::Rearm, ..self.options };
        self.timer.start(Window::at(now + after), now, options)
    }

    /// Like [`start`](Self::start), but counted from `now`, which the caller has just read with
    /// [`Timers::now`]. This saves a reading of the clock. If `now` is in the past, the timer fires
    /// earlier by that much, and later if it is in the future. Other timers are unaffected.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_from(&self, now: Instant, after: Duration) -> Result<Started, StartError> {
        let now = Ns::from(now);
        let options = Options { pending: IfPending::Rearm, ..self.options };
        self.timer.start(Window::at(now + after), now, options)
    }

    /// Arms or rearms the timer to fire at `deadline`; at once if that has passed.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
        let options = Options { pending: IfPending::Rearm, ..self.options };
        self.timer.start(Window::at(deadline.into()), self.timer.shared().now(), options)
    }

    /// Arms the timer if it is idle. If it is pending, its deadline may move earlier, never later.
    ///
    /// # Errors
    ///
    /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned to a
    /// base that does not exist.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn reduce(&self, after: Duration) -> Result<Started, StartError> {
        let now = self.timer.shared().now();
        let options = Options { pending: IfPending::Reduce, ..self.options };
        self.timer.start(Window::at(now + after), now, options)
    }

    /// Cancels the timer without waiting for its callback. Takes no lock if the timer is idle.
    ///
    /// [`Cancel::Running`] means that the callback may still be running. It may even rearm the
    /// timer, by [`Fired::restart`] or [`forward`](Fired::forward). Where that matters, use
    /// [`cancel_sync`](Self::cancel_sync), or a flag that the callback checks. (A
    /// [`Periodic`](crate::Periodic) does not start again after a cancel.)
    #[inline]
    pub fn cancel(&self) -> Cancel {
        self.timer.cancel()
    }

    /// Cancels the timer, unless its callback is running. In that case it changes nothing and
    /// returns [`Cancel::Running`]. Takes no lock if the timer is idle.
    pub fn try_cancel(&self) -> Cancel {
        self.timer.try_cancel()
    }

    /// Cancels the timer and waits until its callback is not running. Afterwards the caller sees
    /// what the callback wrote, and may free what it uses. Returns what the call found: the timer
    /// pending, idle, or its callback running.
    ///
    /// If the callback is not running, this costs as much as [`cancel`](Self::cancel). Otherwise it
    /// spins for a few microseconds and then sleeps. Armings made during the wait, including the
    /// callback's own, are cancelled, too. The callback does not inherit the caller's priority. How
    /// long the call takes while many timers come due is described at
    /// [`HrTimer::cancel_sync`](crate::HrTimer::cancel_sync).
    ///
    /// A wait that would never end is an error; [`CancelError`] lists the cases that are detected.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    #[inline]
    pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_sync()
    }

    /// Like [`cancel_sync`](Self::cancel_sync) but a little cheaper, for a timer that is never
    /// armed while its callback runs, neither by the callback nor by another thread. If the timer
    /// is pending, this does not check whether its callback is running.
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all the same.
    /// [`NotSingleShot`](CancelError::NotSingleShot) if it was armed while its callback ran.
    #[inline]
    pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
        self.timer.cancel_single_shot()
    }

    /// Cancels the timer for good and waits like [`cancel_sync`](Self::cancel_sync): every later
    /// arming fails with [`StartError::Shut`].
    ///
    /// # Errors
    ///
    /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
    /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is shut down all the same.
    pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
        self.timer.shutdown_sync()
    }

    /// Returns `true` if the timer is armed. The answer may be out of date at once.
    pub fn is_pending(&self) -> bool {
        self.timer.is_pending()
    }

    /// Returns `true` if the timer is armed or its callback is running.
    pub fn is_active(&self) -> bool {
        self.timer.is_active()
    }
}
