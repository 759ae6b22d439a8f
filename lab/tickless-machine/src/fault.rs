//! Faults that a test injects: late, lost and slow interrupts, CPUs that are stopped, a clock that
//! stops or jumps, suspends.

use crate::cpu_state::Vector;
use tickless_core::time::Ns;

pub trait Faults {
    /// Returns the delay of an interrupt that is sent to a CPU at `now`; `None` if it is lost.
    fn interrupt(&mut self, vector: Vector, now: Ns) -> Option<Ns>;

    /// Returns the delay of the event of a device that is programmed for `at`; `None` if lost.
    fn device(&mut self, at: Ns) -> Option<Ns>;

    /// Returns for how long a CPU that begins to compute is stopped, as by a hypervisor that runs
    /// another virtual machine. During that time the CPU does nothing and takes no interrupt.
    fn steal(&mut self, now: Ns) -> Ns;

    /// Returns what the cycle counters of all CPUs show at the time `at`. It never goes back.
    fn clock(&mut self, at: Ns) -> Ns;

    /// Returns what the counters, from which the timers' clock gets its time, show at that time. In
    /// a suspend they go on or restart, while simulated time stands, as `CLOCK_MONOTONIC` does, and
    /// so do the devices. `None` if the machine is never suspended.
    fn counter(&mut self, at: Ns) -> Option<u64>;
}
