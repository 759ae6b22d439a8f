//! Faults: the interface to a plan of what goes wrong on a machine.

use crate::state::inbox::Vector;
use tickless_core::time::{CpuId, Ns};

/// A plan of faults. The default methods inject none.
///
/// The machine calls it in the order of simulated events, so a plan that uses only its own state
/// and seed is as deterministic as the machine.
pub trait Faults {
    /// Returns the delay of an interrupt that a CPU sends at `now`; `None` loses it.
    fn interrupt(&mut self, _to: CpuId, _vector: Vector, _now: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// Returns the delay of an event that a CPU programs; `None` loses it.
    fn device(&mut self, _cpu: CpuId, _at: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// Returns for how long a CPU is stopped that begins to compute, as a hypervisor does: until
    /// then it does nothing and takes no interrupt.
    fn steal(&mut self, _cpu: CpuId, _now: Ns) -> Ns {
        Ns::ZERO
    }

    /// Returns the value of all CPUs' cycle counters at a time. It must not decrease.
    fn clock(&mut self, at: Ns) -> Ns {
        at
    }
}
