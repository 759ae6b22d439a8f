//! Devices: a time counter, which serves one MMIO read at a time, and the timer device of each CPU,
//! which interrupts it at a programmed time.

use crate::act::act;
use crate::machine_state::{MachineState, with};
use crate::ps::Ps;
use tickless_core::time::Ns;

impl MachineState {
    /// Reads the counter, which serves one CPU after another. The CPU waits for its turn.
    fn read(&mut self, cpu: usize) -> Ns {
        self.count(cpu);
        let (costs, device) = (self.costs.counter, &mut self.counter);
        let clock = &mut self.cpus[cpu].clock;
        device.free = device.free.max(*clock) + costs.service;
        device.reads += 1;
        *clock = device.free.max(*clock + costs.latency);
        // The counter shows the simulated time at which it has served the read.
        device.free.to_ns()
    }

    fn program(&mut self, cpu: usize, at: Ns) {
        self.count(cpu);
        let delay = match &mut self.faults {
            Some(faults) => faults.device(at),
            None => Some(Ns::ZERO),
        };
        let state = &mut self.cpus[cpu];
        state.clock += self.costs.program;
        // If the plan of faults loses the event, the device is as if it had not been programmed.
        state.inbox.program(delay.map_or(Ps::NEVER, |delay| Ps::from_ns(at.after(delay))));
    }
}

/// Reads the counter, in nanoseconds. The CPU waits until the counter has served the earlier reads
/// and this one. Until then it does nothing else and takes no interrupt.
pub fn read_counter() -> Ns {
    act(Ps::ZERO, MachineState::read).unwrap_or(Ns::ZERO)
}

pub fn counter_reads() -> u64 {
    with(|machine| machine.counter.reads).unwrap_or(0)
}

/// Programs the running CPU's timer device to interrupt the CPU at a time; [`Ns::NEVER`] stops it.
pub fn program(at: Ns) {
    act(Ps::NEVER, |machine, cpu| machine.program(cpu, at));
}
