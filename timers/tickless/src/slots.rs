//! Timers in memory that the caller owns, called slots. The C interface is built on this. It is not
//! a public interface: it can change with any version. Creating a timer allocates nothing, takes no
//! lock and makes no system call. Before the caller drops a timer or frees its slot, it calls
//! `give_back`.

use crate::hrtimer::HrTimer;
use crate::periodic::{self, Missed, Periodic, Run};
use crate::platform::host::WheelLink;
use crate::platform::locked::locked;
use crate::timeout::Timeout;
use crate::timer::cancel_error::CancelError;
use crate::timer::fired::Fired;
use crate::timer::frame;
use crate::timer::shared::Shared;
use crate::timer::slot::{self, Callback, OwnOrLent};
use crate::timers::Timers;
use core::ptr::NonNull;
use std::sync::Mutex;
use tickless_core::link::QueueLink;

pub use crate::platform::clock::read_counter;
pub use crate::platform::fork::{Process, ProcessLock};
pub use crate::timer::slot::Slot;
pub use tickless_core::link::prefetch_at;

pub type CoarseSlot<F> = Slot<WheelLink, F>;
pub type PreciseSlot<F> = Slot<QueueLink, F>;

#[repr(C)]
#[allow(missing_debug_implementations, reason = "an internal type")]
pub struct PeriodSlot<F> {
    slot: Slot<QueueLink, Beat<F>>,
    run: Mutex<Run>,
}

/// What the core calls for a periodic timer in a slot: updates `run` and calls the callback.
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

/// A callback of a timer in a slot. The library calls a copy of the callback, on any thread, so the
/// callback is allowed to free the slot.
pub trait OnFired: Copy + Send + Sync + 'static {
    fn fired(self, fired: &mut Fired<'_>);
}

impl<F: OnFired> Callback for F {
    fn call(self, fired: &mut Fired<'_>) {
        self.fired(fired);
    }
}

impl<F: OnFired> Callback for Beat<F> {
    fn call(self, fired: &mut Fired<'_>) {
        // SAFETY: `self.run` points into the slot, which is in use until the callback gives it back
        // and so detaches itself.
        let run = || (!frame::is_detached()).then(|| locked(unsafe { self.run.as_ref() }));
        periodic::pass(run, fired, |period| self.callback.fired(period));
    }
}

/// Creates a coarse timer in a slot, not armed. Allocates nothing and does not block.
///
/// # Safety
/// - The slot is valid for writes. Until `give_back` of the returned timer has succeeded, it is not
///   moved, freed or used in any other way.
/// - `give_back` is called before the timer is dropped.
/// - It is sound to call the callback on any thread.
pub unsafe fn timeout<F: OnFired>(
    timers: &Timers,
    slot: NonNull<CoarseSlot<F>>,
    callback: F,
) -> Timeout {
    // SAFETY: the caller promises what `own` requires of the slot and the callback.
    Timeout::around(unsafe { slot::own(slot, &timers.shared, callback) })
}

/// Creates a precise timer in a slot, not armed. Allocates nothing and does not block.
///
/// # Safety
/// The caller must keep to the requirements of [`timeout`].
pub unsafe fn hrtimer<F: OnFired>(
    timers: &Timers,
    slot: NonNull<PreciseSlot<F>>,
    callback: F,
) -> HrTimer {
    // SAFETY: the caller promises what `own` requires of the slot and the callback.
    HrTimer::around(unsafe { slot::own(slot, &timers.shared, callback) })
}

/// Creates a periodic timer in a slot, not started. `missed` selects what happens to missed
/// periods. Allocates nothing and does not block.
///
/// # Safety
/// The caller must keep to the requirements of [`timeout`].
pub unsafe fn periodic<F: OnFired>(
    timers: &Timers,
    slot: NonNull<PeriodSlot<F>>,
    missed: Missed,
    callback: F,
) -> Periodic {
    // SAFETY: the caller promises that the slot can be written, and is not moved or freed until
    // `give_back` has succeeded. The timer uses `run`, which is in the slot, only until then.
    unsafe {
        let run = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).run);
        run.write(Mutex::new(Run::new(missed)));
        let beat = Beat { run, callback };
        let timer = NonNull::new_unchecked(&raw mut (*slot.as_ptr()).slot);
        let timer = HrTimer::around(slot::own(timer, &timers.shared, beat));
        Periodic::around(timer, OwnOrLent::Lent(run))
    }
}

// A slot is freed without dropping its mutex. This checks that a mutex owns no memory on Linux. On
// other systems a mutex can own allocated memory, which each freed slot leaks.
#[cfg(linux_platform)]
const _: () = assert!(!core::mem::needs_drop::<Mutex<Run>>(), "a slot is not dropped");

macro_rules! give_back {
    ($type:ident $(, $stop:ident)?) => {
        impl $type {
            /// Labels the timer like `labelled`, but takes the timer by reference.
            #[doc(hidden)]
            pub fn relabel(&self, label: &'static str) {
                self.timer.set_label(label);
            }

            /// Shuts the timer down, waits for its callback as `shutdown_sync` does, and ends the
            /// use of its slot. Inside the timer's own callback it does not wait.
            ///
            /// # Errors
            /// [`CancelError::EachOther`] or [`Lock`](CancelError::Lock) if waiting would never
            /// end. The timer is shut down then, but still uses its slot; call this again.
            ///
            /// # Safety
            /// The timer was created in a slot. After a success the caller only drops it.
            #[doc(hidden)]
            pub unsafe fn give_back(&mut self) -> Result<(), CancelError> {
                $(self.$stop();)?
                // SAFETY: the caller promises that the timer is in a slot, and is only dropped
                // after a success.
                unsafe { self.timer.give_back() }
            }
        }
    };
}

give_back!(Timeout);
give_back!(HrTimer);
give_back!(Periodic, halt);

pub fn is_forked_child(timers: &Timers) -> bool {
    timers.shared.is_forked_child()
}

/// Returns how many timers keep this set alive. Exact only if no thread creates or drops any.
pub fn users(timers: &Timers) -> usize {
    timers.shared.users.count()
}

pub fn is_in_callback_of(timers: &Timers) -> bool {
    // Compare the address of the set's state, which the record of a running callback contains, not
    // the address of this handle.
    let set: &Shared = &timers.shared;
    frame::is_in_callback_of(set)
}

pub fn bases(timers: &Timers) -> usize {
    timers.shared.bases.count()
}
