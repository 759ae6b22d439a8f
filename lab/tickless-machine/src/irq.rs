//! Sends and disables interrupts between simulated CPUs.
//!
//! A handler runs on the stack of the program that it interrupts, with interrupts disabled, between
//! two of the program's steps. The interrupted CPU spends time for the entry and the exit. Sending
//! an interrupt takes the sender time too, and the interrupt arrives later, depending on the
//! distance.

use crate::act::{act, deliver};
use crate::machine_state::{MachineState, with_cpu};
use crate::ps::Ps;
use crate::topology::Distance;
use tickless_core::time::{CpuId, Ns};

pub use crate::cpu_state::Vector;

impl MachineState {
    fn send(&mut self, from: usize, to: CpuId, vector: Vector) {
        self.count(from);
        let distance = self.costs.topology.between(CpuId(from as u16), to);
        let costs = self.costs.irq;
        let transit = match distance {
            Distance::Core | Distance::Socket => costs.near,
            Distance::Near | Distance::Far => costs.far,
        };
        let now = self.cpus[from].clock.to_ns();
        let delay = match &mut self.faults {
            Some(faults) => faults.interrupt(vector, now),
            None => Some(Ns::ZERO),
        };
        let state = &mut self.cpus[from];
        state.clock += costs.send;
        let at = state.clock + transit;
        let (Some(delay), Some(target)) = (delay, self.cpus.get_mut(to.index())) else { return };
        target.inbox.send(at + Ps::from_ns(delay), vector);
        if to.index() != from {
            self.reschedule(to.index());
        }
    }
}

/// Sends an interrupt to a CPU, possibly the running one. A CPU that does not exist is ignored.
pub fn send(to: CpuId, vector: Vector) {
    act(Ps::ZERO, |machine, cpu| machine.send(cpu, to, vector));
}

/// A guard: interrupts are disabled on this CPU until the guard is dropped. Guards can be nested.
#[derive(Debug)]
pub struct Masked(());

/// Disables interrupts. Dropping the last guard delivers the interrupts that have arrived.
pub fn mask() -> Masked {
    with_cpu(|cpu| cpu.masked += 1);
    Masked(())
}

impl Drop for Masked {
    fn drop(&mut self) {
        with_cpu(|cpu| cpu.masked = cpu.masked.saturating_sub(1));
        deliver();
    }
}

/// Handles the interrupts that are due, though the caller has disabled them.
pub(crate) fn enable_briefly() {
    let masked = with_cpu(|cpu| std::mem::take(&mut cpu.masked)).unwrap_or(0);
    deliver();
    with_cpu(|cpu| cpu.masked = masked);
}
