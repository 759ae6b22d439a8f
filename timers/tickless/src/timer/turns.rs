//! Access to a future's waker: the protocol between its task and the driver that fires its timer.
//!
//! Generic over the atomic byte, to let model checkers run this file with a byte of their own. The
//! task writes the waker, and the driver takes it out:
//!
//! | task | driver |
//! |---|---|
//! | state becomes `REGISTERING`, unless it is `FIRED` | state becomes `FIRED` |
//! | writes the waker | takes the waker, unless the state was `REGISTERING` |
//! | state becomes `WAITING`, unless it is `FIRED` by now: the task is ready | |
//!
//! A task can push out its timer without a lock: the timer stays armed, ahead of its deadline.
//!
//! | task | driver, when the timer expires |
//! |---|---|
//! | writes the later deadline | lead becomes closed if it is zero: the deadline has passed |
//! | raises the lead, unless it is closed | otherwise lead becomes zero, |
//! | | and the driver rearms the timer for the deadline that it then reads |

use core::mem::forget;
use core::sync::atomic::Ordering;

/// Only the driver is allowed to access the waker, once, when the timer fires.
const WAITING: u8 = 0;
/// Only the task is allowed to access the waker.
const REGISTERING: u8 = 1;
const FIRED: u8 = 2;

pub trait Byte {
    fn new(value: u8) -> Self;
    fn load(&self, order: Ordering) -> u8;
    fn store(&self, value: u8, order: Ordering);
    fn swap(&self, value: u8, order: Ordering) -> u8;
    /// Writes `new` if the byte is `current`; returns whether it was.
    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool;
}

#[derive(Debug)]
pub struct Turns<B>(B);

impl<B: Byte> Turns<B> {
    pub fn new() -> Turns<B> {
        Turns(B::new(WAITING))
    }

    #[inline]
    pub fn has_fired(&self) -> bool {
        // Acquire: pairs with the Release in `fire`.
        self.0.load(Ordering::Acquire) == FIRED
    }

    /// Marks the timer as fired. Only the task calls this, while the timer is not armed.
    #[inline]
    pub fn set_fired(&self) {
        // Release: pairs with the Acquire in `has_fired`.
        self.0.store(FIRED, Ordering::Release);
    }

    /// Marks the timer as not fired. Only the task calls this, while the timer is not armed.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: arming the timer publishes this to its driver.
        self.0.store(WAITING, Ordering::Relaxed);
    }

    /// Calls `write`, which is allowed to access the waker, and must store a new one. Returns
    /// `false` if the timer has fired: then the task is ready. Only the task calls this. If the
    /// timer fires during a call of `write` that panics, the task's next poll finds that the timer
    /// has fired.
    #[inline]
    pub fn register(&self, write: impl FnOnce()) -> bool {
        // Acquire: pairs with the Release in `fire`. A task that finds `FIRED` here is ready.
        let (success, failure) = (Ordering::Acquire, Ordering::Acquire);
        if !self.0.replace(WAITING, REGISTERING, success, failure) {
            return false;
        }
        let unwinding = Registering(self);
        write();
        forget(unwinding);
        self.end_registering()
    }

    #[inline]
    fn end_registering(&self) -> bool {
        // Release: pairs with the Acquire in `fire`, so the driver sees what `write` stored.
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        self.0.replace(REGISTERING, WAITING, success, failure)
    }

    /// Marks the timer as fired. Then calls `take`, which is allowed to access the waker, unless
    /// the task is registering a waker: then `register` returns `false`, and the task is ready.
    /// Only the driver calls this, once for each arming.
    #[inline]
    pub fn fire<T>(&self, take: impl FnOnce() -> T) -> Option<T> {
        // AcqRel: Acquire, to see the waker that `register` stored. Release, for the Acquire in
        // `register` and in `has_fired`.
        (self.0.swap(FIRED, Ordering::AcqRel) != REGISTERING).then(take)
    }
}

/// If writing the waker panics, ends the registration, to let the task register again.
struct Registering<'a, B: Byte>(&'a Turns<B>);

impl<B: Byte> Drop for Registering<'_, B> {
    fn drop(&mut self) {
        self.0.end_registering();
    }
}

/// By how much a pending timer is armed ahead of its deadline, because the task has moved the
/// deadline to a later time without rearming the timer. The caller chooses the unit.
#[derive(Debug)]
pub struct Lead<B>(B);

impl<B: Byte> Lead<B> {
    /// The value of a lead that the driver has closed. All other values are leads.
    pub const CLOSED: u8 = u8::MAX;

    pub fn new() -> Lead<B> {
        Lead(B::new(0))
    }

    #[inline]
    pub fn get(&self) -> u8 {
        // Relaxed: `replace` finds out whether the driver has changed the lead since.
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the lead. Returns `false` if it is not `current` any more, because the driver has
    /// changed it. Only the task calls this. To raise the lead, it writes the deadline first.
    #[inline]
    pub fn replace(&self, current: u8, new: u8) -> bool {
        // Release: pairs with the Acquire in `close`, after which the driver reads the deadline.
        self.0.replace(current, new, Ordering::Release, Ordering::Relaxed)
    }

    /// Sets the lead to zero. Only the task calls this, while the timer is not armed.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: arming the timer publishes this to its driver.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Closes the lead, so that the task cannot push out the timer, and returns `true`. If the task
    /// has pushed it out, sets the lead to zero instead, and returns `false`: the driver must read
    /// the deadline and rearm the timer for it. Only the driver calls this.
    #[inline]
    pub fn close(&self) -> bool {
        // Acquire: pairs with the Release in `replace`. Both functions change the byte atomically,
        // so the driver cannot overwrite a lead without reading the deadline that belongs to it.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.0.replace(0, Self::CLOSED, success, failure) || {
            self.0.swap(0, Ordering::Acquire);
            false
        }
    }
}
