//! Whose turn it is with a waker: the protocol of a timer inside a future.
//!
//! Over a byte of any world, so that the model checkers run these very lines. The task that owns
//! the waker writes it, and the driver whose timer fires takes it out:
//!
//! | task | driver |
//! |---|---|
//! | `REGISTERING`, unless `FIRED` | `FIRED` |
//! | writes the waker | takes the waker, unless it was `REGISTERING` |
//! | not `REGISTERING` any more; if it was `FIRED` meanwhile, it is done | |

use core::sync::atomic::Ordering;

/// The waker is nobody's but the driver's, if it comes.
const WAITING: u8 = 0;
/// The task writes the waker.
const REGISTERING: u8 = 1;
/// The timer has fired.
const FIRED: u8 = 2;

/// An atomic byte.
pub trait Byte {
    fn new(value: u8) -> Self;
    fn load(&self, order: Ordering) -> u8;
    fn store(&self, value: u8, order: Ordering);
    /// Writes one and returns the other.
    fn swap(&self, value: u8, order: Ordering) -> u8;
    /// Writes `new` if it holds `current`. Did it?
    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool;
}

/// Whose turn it is.
#[derive(Debug)]
pub struct Turns<B>(B);

impl<B: Byte> Turns<B> {
    /// Of a timer that is not armed.
    pub fn new() -> Turns<B> {
        Turns(B::new(WAITING))
    }

    /// Has it fired?
    #[inline]
    pub fn has_fired(&self) -> bool {
        // Acquire: pairs with the Release in `fire`.
        self.0.load(Ordering::Acquire) == FIRED
    }

    /// It counts as fired. For the task, while no driver knows the timer.
    #[inline]
    pub fn set_fired(&self) {
        // Release: nobody else looks at it, but `has_fired` does not know that.
        self.0.store(FIRED, Ordering::Release);
    }

    /// It has not fired. For the task, while no driver knows the timer.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: whatever lets a driver know the timer publishes this.
        self.0.store(WAITING, Ordering::Relaxed);
    }

    /// Has the task write the waker, which will be taken. False if the timer has fired by now. For
    /// the task alone.
    #[inline]
    pub fn register(&self, write: impl FnOnce()) -> bool {
        // Acquire: pairs with the Release of a driver that fired, whose taking of the waker is
        // over or will not come.
        let (on, fired) = (Ordering::Acquire, Ordering::Acquire);
        if !self.0.replace(WAITING, REGISTERING, on, fired) {
            return false;
        }
        write();
        // Release: the driver that takes the waker sees it.
        let (off, fired) = (Ordering::Release, Ordering::Acquire);
        self.0.replace(REGISTERING, WAITING, off, fired)
    }

    /// The timer fires: has the driver take the waker, unless the task is writing one, which then
    /// sees that by itself. For the driver alone, once.
    #[inline]
    pub fn fire<T>(&self, take: impl FnOnce() -> T) -> Option<T> {
        // AcqRel: pairs with `register` and `has_fired`, both ways.
        (self.0.swap(FIRED, Ordering::AcqRel) != REGISTERING).then(take)
    }
}
