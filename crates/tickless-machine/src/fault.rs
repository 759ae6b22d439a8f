//! Faults: what a machine may do wrong, decided by a plan.

use crate::irq::Vector;
use tickless_core::time::{CpuId, Ns};

/// A plan of what goes wrong. The defaults are a machine without faults.
///
/// It is asked in the order of simulated events, so a plan that only uses its own state and
/// seed is as deterministic as the machine.
pub trait Faults {
    /// How much later an interrupt that a CPU sends arrives; `None`: never.
    fn interrupt(&mut self, _to: CpuId, _vector: Vector) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// How much later than programmed a CPU's event device comes.
    fn device(&mut self, _cpu: CpuId, _at: Ns) -> Ns {
        Ns::ZERO
    }
}
