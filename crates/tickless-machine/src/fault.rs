//! The interface through which a test injects faults into a simulated machine.

use crate::cpu_state::Vector;
use tickless_core::time::{CpuId, Ns};

/// A plan of faults: each method decides about one kind of fault. The default methods inject none.
///
/// The machine calls it in the order of simulated events, so a plan that uses only its own state
/// and seed is as deterministic as the machine.
pub trait Faults {
    /// Returns the delay of an interrupt that is sent to a CPU at `now`; `None` if it is lost.
    fn interrupt(&mut self, _to: CpuId, _vector: Vector, _now: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// Returns the delay of a timer interrupt that a CPU programs its device for; `None` if it is
    /// lost.
    fn device(&mut self, _cpu: CpuId, _at: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// Returns for how long a CPU that begins to compute is stopped, as by a hypervisor that runs
    /// another virtual machine. During that time the CPU does nothing and takes no interrupt.
    fn steal(&mut self, _cpu: CpuId, _now: Ns) -> Ns {
        Ns::ZERO
    }

    /// Returns what the cycle counters of all CPUs show at the time `at`, so that a plan can make
    /// them stop or jump. The result must not decrease as `at` grows.
    fn clock(&mut self, at: Ns) -> Ns {
        at
    }
}
