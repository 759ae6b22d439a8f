//! What timers need of an asynchronous runtime that drives them.

use core::fmt;
use tickless_core::time::Ns;

/// A runtime with a clock, and a task that drives timers. All methods may be called under the lock
/// of a base, so none of them panics or uses timers.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Returns the time on the runtime's clock.
    fn now(&self) -> Ns;

    /// Returns whether the program moves that clock, or has moved it: then no device of the system
    /// expires at the right time.
    fn is_virtual(&self) -> bool;

    /// Makes the runtime poll the task that drives the timers.
    fn wake_driver(&self);
}
