//! Timers in memory that the caller owns: the base of the C interface.
//!
//! This is no public interface: it may change with every version.

use crate::hrtimer::HrTimer;
use crate::periodic::{self, Missed, PeriodFired, Periodic, Run, Then};
use crate::platform::host::WheelLink;
use crate::timeout::Timeout;
use crate::timer::cancel_error::CancelError;
use crate::timer::fired::Fired;
use crate::timer::frame;
use crate::timer::slot::{self, Callback, OwnOrLent};
use crate::timers::Timers;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use tickless_core::link::QueueLink;

pub use crate::platform::fork::ProcessLock;
pub use crate::timer::slot::Slot;

/// The place of a [`Timeout`].
pub type CoarseSlot<F> = Slot<WheelLink, F>;
/// The place of an [`HrTimer`].
pub type PreciseSlot<F> = Slot<QueueLink, F>;

/// The place of a [`Periodic`].
#[repr(C)]
pub struct PeriodSlot<F> {
    slot: Slot<QueueLink, Beat<F>>,
    run: Mutex<Run>,
}

impl<F> fmt::Debug for PeriodSlot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodSlot").finish_non_exhaustive()
    }
}

/// What a periodic timer in a slot does when it fires.
#[derive(Debug)]
struct Beat<F> {
    run: NonNull<Mutex<Run>>,
    callback: F,
}

impl<F: Copy> Clone for Beat<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy> Copy for Beat<F> {}

/// A callback for a slot. It is called from a copy, which outlives the slot, on any thread.
pub trait OnFired: Copy + Send + Sync + 'static {
    /// The timer has fired.
    fn fired(self, fired: &mut Fired<'_>);
}

/// A callback for the slot of a periodic timer; as [`OnFired`].
pub trait OnPeriod: Copy + Send + Sync + 'static {
    /// The timer has fired.
    fn period(self, period: &mut PeriodFired<'_, '_>);
}

impl<F: OnFired> Callback for F {
    fn call(self, fired: &mut Fired<'_>) {
        self.fired(fired);
    }
}

impl<F: OnPeriod> Callback for Beat<F> {
    fn call(self, fired: &mut Fired<'_>) {
        // SAFETY: `pass` looks at the run before the callback and, if the slot was not given back
        // in it, after it; so it is there.
        let run = || periodic::lock(unsafe { self.run.as_ref() });
        periodic::pass(run, fired, |period| {
            self.callback.period(period);
            if frame::is_detached() { Then::Gone } else { Then::GoesOn }
        });
    }
}

/// A coarse timer in a slot. Allocates nothing.
///
/// # Safety
/// - The slot is the caller's to write, and stays where it is, and is not used otherwise, until
///   `give_back` of what is returned has succeeded.
/// - That is called before the timer is dropped.
/// - The callback may be called from any thread.
pub unsafe fn timeout<F: OnFired>(
    timers: &Timers,
    slot: NonNull<CoarseSlot<F>>,
    callback: F,
) -> Timeout {
    // SAFETY: as promised.
    Timeout::around(unsafe { slot::own(slot, &timers.shared, callback) })
}

/// A precise timer in a slot. Allocates nothing.
///
/// # Safety
/// As for [`timeout`].
pub unsafe fn hrtimer<F: OnFired>(
    timers: &Timers,
    slot: NonNull<PreciseSlot<F>>,
    callback: F,
) -> HrTimer {
    // SAFETY: as promised.
    HrTimer::around(unsafe { slot::own(slot, &timers.shared, callback) })
}

/// A periodic timer in a slot. Allocates nothing.
///
/// # Safety
/// As for [`timeout`].
pub unsafe fn periodic<F: OnPeriod>(
    timers: &Timers,
    slot: NonNull<PeriodSlot<F>>,
    missed: Missed,
    callback: F,
) -> Periodic {
    // SAFETY: as promised; the run is used for as long as the slot is there.
    unsafe {
        let run = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).run);
        run.write(Mutex::new(Run::new(missed)));
        let beat = Beat { run, callback };
        let timer = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).slot);
        let timer = HrTimer::around(slot::own(timer, &timers.shared, beat));
        Periodic::around(timer, OwnOrLent::Lent(run))
    }
}

// Elsewhere some systems' mutexes have memory of their own, which such a slot would leave behind.
#[cfg(linux_platform)]
const _: () = assert!(!core::mem::needs_drop::<Mutex<Run>>(), "a slot is given up undropped");

macro_rules! give_back {
    ($type:ident) => {
        impl $type {
            /// What `labelled` does, for a timer that is in use.
            #[doc(hidden)]
            pub fn relabel(&self, label: &'static str) {
                self.timer.set_label(label);
            }

            /// Shuts the timer down, waits for its callback as `shutdown_sync` does, and gives
            /// up its slot; inside that very callback without waiting. After an error the timer
            /// is shut down, and still in its slot.
            ///
            /// # Safety
            /// The timer came from a slot. After a success it is dropped and nothing else.
            #[doc(hidden)]
            pub unsafe fn give_back(&mut self) -> Result<(), CancelError> {
                // SAFETY: as promised.
                unsafe { self.timer.give_back() }
            }
        }
    };
}

give_back!(Timeout);
give_back!(HrTimer);

impl Periodic {
    /// What `labelled` does, for a timer that is in use.
    #[doc(hidden)]
    pub fn relabel(&self, label: &'static str) {
        self.timer.set_label(label);
    }

    /// The same for a periodic timer.
    ///
    /// # Safety
    /// The timer came from a slot. After a success it is dropped and nothing else.
    #[doc(hidden)]
    pub unsafe fn give_back(&mut self) -> Result<(), CancelError> {
        self.halt();
        // SAFETY: as promised.
        unsafe { self.timer.give_back() }
    }
}

/// How many timers, of whatever sort, and clones keep these from ending.
pub fn users(timers: &Timers) -> usize {
    // Acquire: who finds nobody left sees what they have done.
    timers.shared.handles.load(Ordering::Acquire) - 1
}

/// Is the calling thread in a callback of these timers?
pub fn is_in_callback_of(timers: &Timers) -> bool {
    frame::is_in_callback_of(&*timers.shared)
}

/// How many bases these timers have.
pub fn bases(timers: &Timers) -> usize {
    timers.shared.bases.count()
}
