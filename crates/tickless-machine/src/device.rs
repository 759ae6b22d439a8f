//! Devices: counters that are read over MMIO one at a time, and each CPU's event device.

use crate::act::act;
use crate::ps::Ps;
use crate::state::counter::Counter;
use crate::world::{World, with};
use tickless_core::time::Ns;

pub use crate::state::counter::CounterId;

impl World {
    fn read(&mut self, cpu: usize, counter: CounterId) -> Ns {
        self.count(cpu);
        let costs = self.costs.counter;
        let Some(device) = self.counters.get_mut(counter.0) else { return Ns::ZERO };
        let state = &mut self.cpus[cpu];
        if let Some(trace) = &mut self.trace {
            trace.begin(state.clock, cpu, "counter read");
        }
        let start = state.clock.max(device.free);
        device.free = start + costs.service;
        device.reads += 1;
        state.clock = device.free.max(state.clock + costs.latency);
        if let Some(trace) = &mut self.trace {
            trace.end(state.clock, cpu);
        }
        // The device says what it is when it is served.
        device.free.min(device.frozen).to_ns()
    }
}

/// A new counter of the machine that runs on this thread, or `None` without one.
pub fn new_counter() -> Option<CounterId> {
    with(|world| {
        world.counters.push(Counter { free: Ps::ZERO, reads: 0, frozen: Ps::NEVER });
        CounterId(world.counters.len() - 1)
    })
}

/// Reads a counter, in nanoseconds: waits for its turn, then for the answer. The CPU can do
/// nothing else meanwhile, not even take an interrupt.
pub fn read_counter(counter: CounterId) -> Ns {
    act(|_, _| Ps::ZERO, |world, cpu| world.read(cpu, counter)).unwrap_or(Ns::ZERO)
}

/// How often a counter was read.
pub fn counter_reads(counter: CounterId) -> u64 {
    with(|world| world.counters.get(counter.0).map_or(0, |device| device.reads)).unwrap_or(0)
}

/// Makes a counter stand still from now on: a fault.
pub fn freeze_counter(counter: CounterId) {
    with(|world| {
        let now = world.cpu().map_or(Ps::ZERO, |cpu| cpu.clock);
        if let Some(device) = world.counters.get_mut(counter.0) {
            device.frozen = now;
        }
    });
}

/// Programs the event device of the CPU that runs; [`Ns::NEVER`] stops it.
pub fn program(at: Ns) {
    act(
        |_, _| Ps::NEVER,
        |world, cpu| {
            world.count(cpu);
            let cost = world.costs.program;
            let late = match &mut world.faults {
                Some(faults) => faults.device(tickless_core::time::CpuId(cpu as u16), at),
                None => Some(Ns::ZERO),
            };
            let state = &mut world.cpus[cpu];
            if let Some(trace) = &mut world.trace {
                trace.instant(state.clock, cpu, "device write");
            }
            state.clock += cost;
            // One that never comes is one that was never programmed.
            state.inbox.program(late.map_or(Ps::NEVER, |late| Ps::from_ns(at.after(late))));
        },
    );
}
