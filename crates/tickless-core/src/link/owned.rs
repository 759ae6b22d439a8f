//! A timer that owns its memory and knows its bases: for platforms without demands of their
//! own on either, such as simulators and replays.

use super::{Timer, TimerRef};
use crate::base::{Bases, Family, Options, StartError, Started};
use crate::cancel::{Cancel, NotSingleShot, Occupied};
use crate::platform::Platform;
use crate::queue::Window;
use crate::time::Ns;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ptr::NonNull;

/// A timer on the heap, tied to the bases it is used with.
///
/// Dropping it shuts it down and waits until it runs nowhere; a callback must not drop its own.
pub struct OwnedTimer<P: Platform, L: Family> {
    timer: NonNull<Timer<P, L>>,
    bases: Arc<Bases<P>>,
}

// SAFETY: a timer is made to be used from many threads; its task is `Send` by `Platform`.
unsafe impl<P: Platform, L: Family> Send for OwnedTimer<P, L> {}
// SAFETY: all uses go through the bases, which take the timer's lock.
unsafe impl<P: Platform, L: Family> Sync for OwnedTimer<P, L> {}

impl<P: Platform, L: Family> fmt::Debug for OwnedTimer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTimer").field("pending", &self.is_pending()).finish()
    }
}

impl<P: Platform, L: Family> OwnedTimer<P, L> {
    /// A timer that has never been armed and will hand back `task` when it fires.
    pub fn new(bases: &Arc<Bases<P>>, task: P::Task) -> Self {
        let timer = NonNull::from(Box::leak(Box::new(Timer::new(task))));
        OwnedTimer { timer, bases: Arc::clone(bases) }
    }

    /// See [`Bases::start`].
    pub fn start(&self, window: Window, now: Ns, options: Options) -> Result<Started, StartError> {
        self.bases.start(self.timer(), window, now, options)
    }

    /// See [`Bases::cancel`].
    pub fn cancel(&self) -> Cancel {
        self.bases.cancel(self.timer())
    }

    /// See [`Bases::try_cancel`].
    pub fn try_cancel(&self) -> Cancel {
        self.bases.try_cancel(self.timer())
    }

    /// See [`Bases::cancel_sync`].
    pub fn cancel_sync(&self) -> Cancel {
        self.bases.cancel_sync(self.timer())
    }

    /// See [`Bases::cancel_sync_unless`].
    pub fn cancel_sync_unless<E>(
        &self,
        refuse: impl FnMut(Occupied) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        self.bases.cancel_sync_unless(self.timer(), refuse)
    }

    /// See [`Bases::cancel_single_shot`].
    pub fn cancel_single_shot(&self) -> Result<Cancel, NotSingleShot> {
        self.bases.cancel_single_shot(self.timer())
    }

    /// See [`Bases::shutdown`].
    pub fn shutdown(&self) -> Cancel {
        self.bases.shutdown(self.timer())
    }

    /// See [`Bases::shutdown_sync`].
    pub fn shutdown_sync(&self) -> Cancel {
        self.bases.shutdown_sync(self.timer())
    }

    /// See [`Bases::is_active`].
    pub fn is_active(&self) -> bool {
        self.bases.is_active(self.timer())
    }

    /// See [`Bases::is_running`].
    pub fn is_running(&self) -> bool {
        self.bases.is_running(self.timer())
    }

    /// See [`Bases::is_pending`].
    pub fn is_pending(&self) -> bool {
        self.bases.is_pending(self.timer())
    }

    fn timer(&self) -> TimerRef<P, L> {
        // SAFETY: the allocation stays until `drop`, which shuts the timer down first; the
        // reference is only used with the bases that are kept here.
        unsafe { TimerRef::new(self.timer) }
    }
}

impl<P: Platform, L: Family> Drop for OwnedTimer<P, L> {
    fn drop(&mut self) {
        self.bases.shutdown_sync(self.timer());
        // SAFETY: `new` leaked this box; the timer is shut down and runs nowhere.
        drop(unsafe { Box::from_raw(self.timer.as_ptr()) });
    }
}
