//! What timers need of an asynchronous runtime (such as tokio's), if a task in it runs the timers.

use core::fmt;
use tickless_core::time::Ns;

/// An asynchronous runtime, with a clock, and with a task that runs the timers. All methods may be
/// called under the lock of a base: they must not panic or use timers.
pub trait Runtime: fmt::Debug + Send + Sync {
    fn now(&self) -> Ns;

    /// Returns whether the program moves the runtime's clock itself, or has done so. Then a timer
    /// of the kernel would expire at the wrong time.
    fn is_virtual(&self) -> bool;

    /// Makes the runtime poll the task that runs the timers.
    fn wake_task(&self);
}
