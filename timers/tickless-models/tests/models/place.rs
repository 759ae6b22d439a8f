//! Memory for timers that a model frees and reuses.

use super::platform::{Kind, ModelPlatform};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use tickless_core::link::{NewTimer, Timer, TimerRef};

/// Memory for a timer. After the timer has been freed, a new one is made at the same address.
pub struct Place<L>(Box<UnsafeCell<Timer<ModelPlatform, L>>>);

// SAFETY: the timer is used through references that the bases serialise, and replaced only by the
// thread that a model makes its owner.
unsafe impl<L> Send for Place<L> {}
// SAFETY: as above.
unsafe impl<L> Sync for Place<L> {}

impl<L: Kind> Place<L> {
    pub fn new(task: usize) -> Self {
        Place(Box::new(UnsafeCell::new(Timer::new(task))))
    }

    pub fn timer(&self) -> TimerRef<ModelPlatform, L> {
        // SAFETY: the memory is freed after the model's run. A model shuts its timers down or frees
        // them where it claims that this is allowed; the checker judges that, since it reports each
        // use of a timer's word that does not happen before the next timer is made.
        unsafe { TimerRef::new(NonNull::new_unchecked(self.0.get())) }
    }

    /// Returns the only reference to the current timer, which has never been armed.
    pub fn new_timer(&self) -> NewTimer<ModelPlatform, L> {
        // SAFETY: as in `timer`.
        unsafe { NewTimer::new(NonNull::new_unchecked(self.0.get())) }
    }

    /// Frees the timer and makes another at its address. The caller claims that this is allowed.
    pub fn free_and_reuse(&self, task: usize) {
        // SAFETY: the old timer is not used any more, or the model fails: see `timer`. The memory
        // always holds a timer.
        unsafe { *self.0.get() = Timer::new(task) };
    }
}
