//! Faults: what a machine may do wrong, decided by a plan.

use crate::state::inbox::Vector;
use tickless_core::time::{CpuId, Ns};

/// A plan of what goes wrong. The defaults are a machine without faults.
///
/// It is asked in the order of simulated events, so a plan that only uses its own state and
/// seed is as deterministic as the machine.
pub trait Faults {
    /// How much later an interrupt that a CPU sends at `now` arrives; `None`: never.
    fn interrupt(&mut self, _to: CpuId, _vector: Vector, _now: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// How much later than programmed a CPU's event device comes; `None`: never, until it is
    /// programmed again.
    fn device(&mut self, _cpu: CpuId, _at: Ns) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// How long a CPU is taken away from what begins to compute on it, as a hypervisor does it:
    /// it does nothing meanwhile, and takes no interrupt.
    fn steal(&mut self, _cpu: CpuId, _now: Ns) -> Ns {
        Ns::ZERO
    }

    /// What the CPUs' cycle counters show at a time: the same on all, and never going back.
    fn clock(&mut self, at: Ns) -> Ns {
        at
    }
}
