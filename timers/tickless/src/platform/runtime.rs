//! What timers need of an asynchronous runtime (such as tokio's), if a task in it runs the timers.

use core::fmt;
use tickless_core::time::Ns;

/// An asynchronous runtime, with a clock, and with a task that runs the timers. All methods are
/// sometimes called under the lock of a base: they must not panic or use timers.
pub trait Runtime: fmt::Debug + Send + Sync {
    fn now(&self) -> Ns;

    /// Returns whether the program is known to move the runtime's clock itself, or to have done so.
    fn is_virtual(&self) -> bool;

    /// Returns the deadline that the runtime has reached while it fires timers on a virtual clock,
    /// which can be before the present. Otherwise [`Ns::NEVER`].
    #[cfg(feature = "tokio-time")]
    fn reached(&self) -> Ns;

    /// Returns whether the runtime has shut down: nothing fires timers any more.
    fn has_ended(&self) -> bool;

    /// Returns whether the task that runs the timers waits in a timer of the runtime. Otherwise it
    /// waits for a timer of the kernel, which would expire at the wrong time on a virtual clock. So
    /// this method checks whether the clock has become virtual.
    fn waits_in_task(&self) -> bool;

    /// Returns whether the runtime has looked for due timers since the time `deadline`. A new timer
    /// whose deadline has passed waits for that, so that the task yields to the runtime. Never
    /// called under a lock.
    fn has_seen(&self, deadline: Ns) -> bool;

    /// Returns whether the program cannot move the clock, and `has_seen` reads none: then it is
    /// asked without a look at the time.
    fn is_steady(&self) -> bool;

    /// Makes the runtime poll the task that runs the timers.
    fn wake_task(&self);
}
