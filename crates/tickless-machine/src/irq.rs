//! Interrupts: sending them, and keeping them off.
//!
//! A handler runs on the stack of what it interrupts, with interrupts disabled, between two of
//! the program's priced steps. It costs its entry and its exit; one that another CPU sends costs
//! the sender and is under way for as long as the distance takes.

use crate::act::act;
use crate::deliver::deliver;
use crate::ps::Ps;
use crate::topology::Distance;
use crate::world::{World, with};
use tickless_core::time::{CpuId, Ns};

pub use crate::state::inbox::Vector;

impl World {
    fn send(&mut self, from: usize, to: CpuId, vector: Vector) {
        self.count(from);
        let distance = self.costs.topology.between(CpuId(from as u16), to);
        let costs = self.costs.irq;
        let way = match distance {
            Distance::Core | Distance::Socket => costs.near,
            Distance::Near | Distance::Far => costs.far,
        };
        let now = self.cpus[from].clock.to_ns();
        let late = match &mut self.faults {
            Some(faults) => faults.interrupt(to, vector, now),
            None => Some(Ns::ZERO),
        };
        let state = &mut self.cpus[from];
        state.clock += costs.send;
        let at = state.clock + way;
        let (Some(late), Some(target)) = (late, self.cpus.get_mut(to.index())) else { return };
        target.inbox.send(at + Ps::from_ns(late), vector);
        if to.index() != from {
            self.reschedule(to.index());
        }
    }
}

/// Sends an interrupt to a CPU, this one included. A CPU that does not exist gets none.
pub fn send(to: CpuId, vector: Vector) {
    act(|_, _| Ps::ZERO, |world, cpu| world.send(cpu, to, vector));
}

/// Interrupts are disabled on this CPU for as long as it lives. May be nested.
#[derive(Debug)]
pub struct Masked(());

impl Masked {
    /// Disables them, until it is dropped: what came in meanwhile is delivered then.
    pub fn new() -> Masked {
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.masked += 1;
            }
        });
        Masked(())
    }
}

impl Default for Masked {
    fn default() -> Masked {
        Masked::new()
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.masked = cpu.masked.saturating_sub(1);
            }
        });
        deliver();
    }
}

/// Enables interrupts for as long as it takes to deliver those that are due; for a
/// caller that has disabled them once.
pub(crate) fn enable_briefly() {
    let masked = with(|world| world.cpu().map(|cpu| std::mem::take(&mut cpu.masked))).flatten();
    deliver();
    with(|world| {
        if let (Some(cpu), Some(masked)) = (world.cpu(), masked) {
            cpu.masked = masked;
        }
    });
}
