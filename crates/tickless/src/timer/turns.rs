//! Access to a future's waker: the protocol between its task and the driver that fires its timer.
//!
//! Generic over the byte, so that the model checkers run this file. The task writes the waker, and
//! the driver takes it out:
//!
//! | task | driver |
//! |---|---|
//! | state becomes `REGISTERING`, unless it is `FIRED` | state becomes `FIRED` |
//! | writes the waker | takes the waker, unless the state was `REGISTERING` |
//! | state becomes `WAITING`, unless it is `FIRED` by now: the task is ready | |

use core::mem::forget;
use core::sync::atomic::Ordering;

/// Only a driver may access the waker, once.
const WAITING: u8 = 0;
/// Only the task may access the waker.
const REGISTERING: u8 = 1;
/// The timer has fired.
const FIRED: u8 = 2;

/// An atomic byte.
pub trait Byte {
    fn new(value: u8) -> Self;
    fn load(&self, order: Ordering) -> u8;
    fn store(&self, value: u8, order: Ordering);
    /// Writes a value and returns the one before.
    fn swap(&self, value: u8, order: Ordering) -> u8;
    /// Writes `new` if the byte is `current`; returns whether it was.
    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool;
}

/// Which of the two may access the waker.
#[derive(Debug)]
pub struct Turns<B>(B);

impl<B: Byte> Turns<B> {
    /// For a timer that is not armed.
    pub fn new() -> Turns<B> {
        Turns(B::new(WAITING))
    }

    /// Returns whether the timer has fired.
    #[inline]
    pub fn has_fired(&self) -> bool {
        // Acquire: pairs with the Release in `fire`.
        self.0.load(Ordering::Acquire) == FIRED
    }

    /// Marks the timer as fired. Only the task may call this, while the timer is not armed.
    #[inline]
    pub fn set_fired(&self) {
        // Release: `has_fired` acquires, although only the task calls it here.
        self.0.store(FIRED, Ordering::Release);
    }

    /// Marks the timer as not fired. Only the task may call this, while the timer is not armed.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: arming the timer publishes this to its driver.
        self.0.store(WAITING, Ordering::Relaxed);
    }

    /// Calls `write`, which may access the waker and leaves one for the driver. Returns `false` if
    /// the timer has fired: then the task is ready. Only the task may call this.
    ///
    /// If the timer fires while `write` panics, the task is not woken; its next poll finds out.
    #[inline]
    pub fn register(&self, write: impl FnOnce()) -> bool {
        // Acquire: pairs with the Release of a driver that has fired: it does not access the waker
        // any more.
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
        // Release: the driver that takes the waker sees it.
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        self.0.replace(REGISTERING, WAITING, success, failure)
    }

    /// Marks the timer as fired and calls `take`, which may access the waker, unless the task is
    /// writing one: then the task finds out by itself. Only the driver may call this, once an
    /// arming.
    #[inline]
    pub fn fire<T>(&self, take: impl FnOnce() -> T) -> Option<T> {
        // AcqRel: pairs with `register` and `has_fired`, both ways.
        (self.0.swap(FIRED, Ordering::AcqRel) != REGISTERING).then(take)
    }
}

/// Dropped when writing the waker panics: the task may register again.
struct Registering<'a, B: Byte>(&'a Turns<B>);

impl<B: Byte> Drop for Registering<'_, B> {
    fn drop(&mut self) {
        self.0.end_registering();
    }
}
