//! The functions by which a program uses its simulated CPU: compute, wait, halt, switch off.

use crate::act::{self, act};
use crate::cpu_state::{Mode, Segment};
use crate::fiber;
use crate::machine_state::{MachineState, with, with_cpu, with_running};
use crate::ps::Ps;
use tickless_core::time::CpuId;

pub use crate::cpu_state::Waited;

impl MachineState {
    /// Begins a computation. Returns true if it has already ended: neither an interrupt nor another
    /// CPU's action comes before its end, so the CPU's clock is simply advanced.
    fn begin_work(&mut self, cpu: usize, work: Ps, limit: Ps) -> bool {
        self.count(cpu);
        if let Some(faults) = &mut self.faults {
            let now = self.cpus[cpu].clock;
            let stolen = faults.steal(now.to_ns());
            self.cpus[cpu].clock = now + Ps::from_ns(stolen);
        }
        let segment = Segment::new(self.cpus[cpu].clock, work, self.rate(cpu), limit);
        let state = &mut self.cpus[cpu];
        let interrupt = if state.masked == 0 { state.inbox.next } else { Ps::NEVER };
        if segment.end < limit && segment.end < self.horizon && segment.end < interrupt {
            state.clock = segment.end;
            return true;
        }
        state.mode = Mode::Working(segment);
        false
    }

    /// Ends a computation before its end. Returns what is left of it.
    fn end_work(&mut self, cpu: usize) -> Ps {
        let state = &mut self.cpus[cpu];
        let Mode::Working(segment) = state.mode else { return Ps::ZERO };
        state.mode = Mode::Running;
        segment.left(state.clock)
    }
}

/// Simulates a computation that takes the time `amount` on a core whose other SMT threads are idle.
/// Busy SMT threads of the same core make it slower. Interrupts are handled in between. Does
/// nothing outside a simulated CPU.
pub fn work(amount: Ps) {
    work_until(amount, Ps::NEVER);
}

/// Simulates a computation as [`work`] does, but ends it at the time `limit`. Returns the rest.
pub fn work_until(amount: Ps, limit: Ps) -> Ps {
    let mut left = amount;
    while left > Ps::ZERO && clock() < limit {
        match act(Ps::NEVER, |machine, cpu| machine.begin_work(cpu, left, limit)) {
            None | Some(true) => return Ps::ZERO,
            Some(false) => {}
        }
        fiber::suspend();
        left = with_running(MachineState::end_work).unwrap_or(Ps::ZERO);
    }
    left
}

/// Waits for an interrupt, in the deepest idle state that saves energy until the CPU's timer fires.
///
/// Call it with interrupts disabled, after the last check for work: an interrupt that arrives in
/// between ends the wait at once. It is delivered when interrupts are enabled again.
pub fn halt() {
    if act(Ps::ZERO, MachineState::begin_halt).is_some() {
        fiber::suspend();
        with_running(MachineState::end_halt);
    }
}

/// Switches the running CPU off until a time. Its timer device loses its setting, interrupts that
/// arrive until then are lost, and its program is suspended. Call it with interrupts disabled.
pub fn power_off(until: Ps) {
    let is_off = act(Ps::ZERO, |machine, cpu| {
        machine.count(cpu);
        let state = &mut machine.cpus[cpu];
        state.masked += 1;
        state.mode = Mode::Waiting(until);
        machine.leave_core(cpu);
    });
    if is_off.is_none() {
        return;
    }
    act::suspend();
    with_running(|machine, cpu| {
        let state = &mut machine.cpus[cpu];
        state.inbox.clear();
        state.masked = state.masked.saturating_sub(1);
        machine.join_core(cpu);
    });
}

/// Waits until a time. The CPU counts as busy, so the other threads of its core are slower.
/// Interrupts are handled until then. Does nothing outside a simulated CPU.
pub fn wait_until(at: Ps) {
    let begin_wait = |machine: &mut MachineState, cpu: usize| {
        machine.count(cpu);
        let state = &mut machine.cpus[cpu];
        let waits = state.clock < at;
        if waits {
            state.mode = Mode::Waiting(at);
        }
        waits
    };
    while act(Ps::NEVER, begin_wait) == Some(true) {
        act::suspend();
    }
}

/// Advances the running CPU's clock by the duration of a short computation. Unlike
/// [`work`], it cannot be interrupted, and the other threads of the core do
/// not slow it down.
pub fn charge(amount: Ps) {
    with_cpu(|cpu| cpu.clock += amount);
}

/// The running CPU's next access needs what its latest one has loaded, for example because the
/// loaded number is an address: the CPU cannot request the next line before the latest has arrived.
pub fn depend() {
    with_cpu(|cpu| cpu.miss = None);
}

/// Returns the time for which a critical section of the timer code computes, as the machine's file
/// states it. It excludes the section's memory accesses. Zero outside a machine.
pub fn section() -> Ps {
    with(|machine| machine.costs.section).unwrap_or(Ps::ZERO)
}

pub fn clock() -> Ps {
    with_cpu(|cpu| cpu.clock).unwrap_or(Ps::ZERO)
}

pub fn waited() -> Waited {
    with_cpu(|cpu| cpu.waited).unwrap_or_default()
}

/// Returns how often accesses of the running CPU have moved a cache line from another core's cache,
/// or taken away another core's copy.
pub fn lines_moved() -> u64 {
    with_cpu(|cpu| cpu.lines_moved).unwrap_or(0)
}

pub fn here() -> CpuId {
    CpuId(with(|machine| machine.running).flatten().unwrap_or(0) as u16)
}
