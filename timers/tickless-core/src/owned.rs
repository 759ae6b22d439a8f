//! A timer that owns its memory and keeps its bases (the timers of each CPU) alive, for simulators
//! and replays.
//!
//! Real machines use `tickless/src/timer/pinned.rs` instead, which also handles waits that would
//! never end, callbacks on the caller's stack, forked children, and memory that the program owns.

use crate::bases::cancel::{Cancel, Wait};
use crate::bases::{Bases, Family, Options, StartError, Started};
use crate::link::{Timer, TimerRef};
use crate::platform::{Ordering, Platform, Word};
use crate::state::Life;
use crate::time::{Ns, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::ptr::NonNull;

/// A timer on the heap, and the bases with which it is used. Dropping it shuts it down and waits
/// until its callback has returned. A callback must not drop its own timer.
pub struct OwnedTimer<P: Platform, L: Family<P>> {
    timer: NonNull<Timer<P, L>>,
    bases: Arc<Bases<P>>,
}

// SAFETY: many threads can use a timer at once; `Platform` requires that its task is `Send`.
unsafe impl<P: Platform, L: Family<P>> Send for OwnedTimer<P, L> {}
// SAFETY: the bases, through which all uses go, take the timer's lock.
unsafe impl<P: Platform, L: Family<P>> Sync for OwnedTimer<P, L> {}

impl<P: Platform, L: Family<P>> fmt::Debug for OwnedTimer<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTimer").field("pending", &self.is_pending()).finish()
    }
}

impl<P: Platform, L: Family<P>> OwnedTimer<P, L> {
    /// Creates a timer that was never armed. The bases return `task` when it fires.
    pub fn new(bases: &Arc<Bases<P>>, task: P::Task) -> Self {
        let timer = NonNull::from(Box::leak(Box::new(Lined(Timer::<P, L>::new(task)))));
        OwnedTimer { timer: timer.cast(), bases: Arc::clone(bases) }
    }

    /// Creates a timer that is lazy for its lifetime: removing it or pushing it out need not
    /// program the event device ([`LazyTimers`](crate::rearm::LazyTimers)).
    pub fn lazy(bases: &Arc<Bases<P>>, task: P::Task) -> Self {
        let owned = OwnedTimer::new(bases, task);
        // Relaxed: no other thread has the timer yet.
        owned.timer().word().store(Life::FRESH.lazy().word(), Ordering::Relaxed);
        owned
    }

    /// See [`Bases::start`].
    pub fn start(&self, window: Window, now: Ns, options: Options) -> Result<Started, StartError> {
        self.bases.start(self.timer(), window, now, options)
    }

    /// See [`Bases::cancel_sync_unless`].
    pub fn cancel_sync_unless<E>(
        &self,
        refuse: impl FnMut(Wait) -> Result<(), E>,
    ) -> Result<Cancel, E> {
        self.bases.cancel_sync_unless(self.timer(), refuse)
    }

    /// See [`Bases::cancel_single_shot`].
    pub fn cancel_single_shot(&self) -> Option<Cancel> {
        let Ok(found) = self.bases.cancel_single_shot(self.timer(), |_| Ok::<(), Infallible>(()));
        found
    }

    fn timer(&self) -> TimerRef<P, L> {
        // SAFETY: the allocation lives until `drop`, which shuts the timer down first; the
        // reference is only used with `self.bases`.
        unsafe { TimerRef::new(self.timer) }
    }
}

/// Methods of the bases, for this timer.
macro_rules! forward {
    ($($name:ident -> $result:ty;)*) => {
        impl<P: Platform, L: Family<P>> OwnedTimer<P, L> {
            $(
                #[doc = concat!("See [`Bases::", stringify!($name), "`].")]
                pub fn $name(&self) -> $result {
                    self.bases.$name(self.timer())
                }
            )*
        }
    };
}

forward! {
    cancel -> Cancel;
    try_cancel -> Cancel;
    cancel_sync -> Cancel;
    shutdown -> Cancel;
    shutdown_sync -> Cancel;
    is_active -> bool;
    is_running -> bool;
    is_pending -> bool;
}

impl<P: Platform, L: Family<P>> Drop for OwnedTimer<P, L> {
    fn drop(&mut self) {
        self.bases.shutdown_sync(self.timer());
        // SAFETY: `new` leaked this box; the timer is shut down and runs nowhere.
        drop(unsafe { Box::from_raw(self.timer.cast::<Lined<Timer<P, L>>>().as_ptr()) });
    }
}

/// A value on cache lines of its own.
#[repr(C, align(64))]
struct Lined<T>(T);
