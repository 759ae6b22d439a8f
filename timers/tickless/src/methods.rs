//! The methods that [`Timeout`](crate::Timeout) and [`HrTimer`](crate::HrTimer) share.

/// Adds the methods that `Timeout` and `HrTimer` share. The type must have a field `timer` of type
/// `Owned`, and the functions `around(timer)`, `window(deadline)` and `arm`.
macro_rules! timer_methods {
    ($type:ident, $link:ident $(, #[$inline:meta])?) => {
        impl $type {
            /// Makes a handle from an `Owned` that is only lent. The caller must drop neither of
            /// them: the drop would end the timer while its real owner still uses it.
            #[inline]
            pub(crate) fn lent(timer: ManuallyDrop<Owned<$link>>) -> ManuallyDrop<$type> {
                ManuallyDrop::new($type::around(ManuallyDrop::into_inner(timer)))
            }

            /// Labels the timer. [`Timers::timer_list`](crate::Timers::timer_list) and
            /// [`leaks`](crate::Timers::leaks) show the label, or the type of the callback if there
            /// is none. Takes a lock and can allocate, once.
            pub fn labelled(self, label: &'static str) -> $type {
                self.timer.set_label(label);
                self
            }

            /// Arms or rearms the timer to fire when `after` has passed. Reads the clock.
            ///
            /// # Errors
            ///
            /// [`StartError`](crate::callback::StartError) if the timer was shut down, or is pinned
            /// to a base that does not exist.
            $(#[$inline])?
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn start(&self, after: Duration) -> Result<Started, StartError> {
                let now = self.timer.now();
                self.arm(self.window(now + after), now, IfPending::Rearm)
            }

            /// Like [`start`](Self::start), but counted from `now`, which the caller has just read
            /// with [`Timers::now`]. This saves a reading of the clock. If `now` is not the current
            /// time, the timer fires earlier or later by that much.
            ///
            /// # Errors
            ///
            /// Fails as [`start`](Self::start) does.
            $(#[$inline])?
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn start_from(&self, now: Instant, after: Duration) -> Result<Started, StartError> {
                let now = now.to_ns();
                self.arm(self.window(now + after), now, IfPending::Rearm)
            }

            /// Arms or rearms the timer to fire at `deadline`; at once if that has passed.
            ///
            /// # Errors
            ///
            /// Fails as [`start`](Self::start) does.
            $(#[$inline])?
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn start_at(&self, deadline: Instant) -> Result<Started, StartError> {
                let (window, now) = (self.window(deadline.to_ns()), self.timer.now());
                self.arm(window, now, IfPending::Rearm)
            }

            /// Arms the timer if it is idle. If it is pending, its deadline can move earlier, never
            /// later.
            ///
            /// # Errors
            ///
            /// Fails as [`start`](Self::start) does.
            $(#[$inline])?
            #[cfg_attr(debug_assertions, track_caller)]
            pub fn reduce(&self, after: Duration) -> Result<Started, StartError> {
                let now = self.timer.now();
                self.arm(self.window(now + after), now, IfPending::Reduce)
            }

            /// Cancels the timer without waiting for its callback. Takes no lock if the timer is
            /// idle.
            ///
            /// [`Cancel::Running`] means that the callback is perhaps still running, and can even
            /// rearm the timer by [`Fired::restart`]. Where that matters, use
            /// [`cancel_sync`](Self::cancel_sync), or a flag that the callback checks.
            $(#[$inline])?
            pub fn cancel(&self) -> Cancel {
                self.timer.cancel()
            }

            /// Cancels the timer, unless its callback is running. In that case the call changes
            /// nothing and returns [`Cancel::Running`]. Takes no lock if the timer is idle.
            pub fn try_cancel(&self) -> Cancel {
                self.timer.try_cancel()
            }

            /// Cancels the timer and waits until its callback is not running. Afterwards the caller
            /// sees what the callback wrote, and can free what the callback uses. Returns what the
            /// call found: the timer pending, idle, or its callback running.
            ///
            /// If the callback is not running, this costs as much as [`cancel`](Self::cancel).
            /// Otherwise the call spins for a few microseconds and then sleeps. Armings made during
            /// the wait, including the callback's own, are cancelled, too. The callback does not
            /// inherit the caller's priority.
            ///
            /// The call waits for the base's lock for a bounded time only: the driver releases the
            /// lock for every callback, and otherwise after at most 64 timers.
            ///
            /// # Errors
            ///
            /// [`CancelError::OwnCallback`], [`EachOther`](CancelError::EachOther) or
            /// [`Lock`](CancelError::Lock) if waiting would never end. The timer is cancelled all
            /// the same.
            #[inline]
            pub fn cancel_sync(&self) -> Result<Cancel, CancelError> {
                self.timer.cancel_sync()
            }

            /// Like [`cancel_sync`](Self::cancel_sync), for a timer that is never armed while its
            /// callback runs: if it is pending, this does not check whether the callback is
            /// running. That is a little cheaper while callbacks of other timers run.
            ///
            /// # Errors
            ///
            /// Fails as [`cancel_sync`](Self::cancel_sync) does, and with
            /// [`NotSingleShot`](CancelError::NotSingleShot) if the timer was armed while its
            /// callback ran.
            #[inline]
            pub fn cancel_single_shot(&self) -> Result<Cancel, CancelError> {
                self.timer.cancel_single_shot()
            }

            /// Cancels the timer for good and waits: every later arming fails with
            /// [`StartError::Shut`].
            ///
            /// # Errors
            ///
            /// Fails as [`cancel_sync`](Self::cancel_sync) does. The timer is shut down all the
            /// same.
            pub fn shutdown_sync(&self) -> Result<Cancel, CancelError> {
                self.timer.shutdown_sync()
            }

            /// Returns `true` if the timer is armed. The answer can be out of date at once.
            pub fn is_pending(&self) -> bool {
                self.timer.is_pending()
            }

            /// Returns `true` if the timer is armed or its callback is running.
            pub fn is_active(&self) -> bool {
                self.timer.is_active()
            }
        }
    };
}

pub(crate) use timer_methods;
