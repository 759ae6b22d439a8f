//! Memory that holds one timer after the other, for models in which memory is used again.

use super::checker::Checker;
use super::world::World;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use tickless_core::bases::Family;
use tickless_core::link::{NewTimer, Timer, TimerRef};

/// A place for a timer; one that was freed leaves it to a new one at the same address.
pub struct Place<C: Checker, L>(Box<UnsafeCell<Timer<World<C>, L>>>);

// SAFETY: the timer in it is used through references that the bases serialise, and is replaced
// only by whom a model makes its owner.
unsafe impl<C: Checker, L> Send for Place<C, L> {}
// SAFETY: as above.
unsafe impl<C: Checker, L> Sync for Place<C, L> {}

impl<C: Checker, L: Family<World<C>>> Place<C, L> {
    /// A place with a timer that has never been armed.
    pub fn new(task: usize) -> Self {
        Place(Box::new(UnsafeCell::new(Timer::new(task))))
    }

    /// The timer that is there just now.
    pub fn timer(&self) -> TimerRef<World<C>, L> {
        // SAFETY: the memory stays as long as the model's run, and every model shuts its timers
        // down, or frees them as it claims to be legal, which is what the checker then judges:
        // it sees every use of a timer's word that does not happen before the next timer.
        unsafe { TimerRef::new(NonNull::new_unchecked(self.0.get())) }
    }

    /// The same before its first arming, for whoever is the only one to know it.
    pub fn new_timer(&self) -> NewTimer<World<C>, L> {
        // SAFETY: as in `timer`.
        unsafe { NewTimer::new(NonNull::new_unchecked(self.0.get())) }
    }

    /// Frees the timer and makes another one at its address. For whoever may free it.
    pub fn free_and_use_again(&self, task: usize) {
        // SAFETY: nobody uses the old timer any more, or the model fails: see `timer`. The
        // memory always holds one timer or the other.
        unsafe { *self.0.get() = Timer::new(task) };
    }
}
