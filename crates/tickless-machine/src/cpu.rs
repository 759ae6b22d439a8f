//! What a program does with the CPU that it runs on: computing, waiting, halting, switching it off.

use crate::act::act;
use crate::engine::clock;
use crate::fiber;
use crate::ps::Ps;
use crate::state::cpu::{Mode, Segment};
use crate::world::{World, with};
use tickless_core::time::CpuId;

pub use crate::state::cpu::{Usage, Waited};

impl World {
    /// Begins to compute. True: it is over already, nobody else came first.
    fn begin_work(&mut self, cpu: usize, work: Ps, limit: Ps) -> bool {
        self.count(cpu);
        if let Some(faults) = &mut self.faults {
            let now = self.cpus[cpu].clock;
            let stolen = faults.steal(CpuId(cpu as u16), now.to_ns());
            self.cpus[cpu].clock = now + Ps::from_ns(stolen);
        }
        let segment = Segment::new(self.cpus[cpu].clock, work, self.rate(cpu), limit);
        let state = &mut self.cpus[cpu];
        let interrupt = if state.masked == 0 { state.inbox.next() } else { Ps::NEVER };
        if segment.end < limit && segment.end < self.horizon && segment.end < interrupt {
            state.clock = segment.end;
            return true;
        }
        state.mode = Mode::Working(segment);
        false
    }

    /// Returns what is left to compute.
    fn end_work(&mut self, cpu: usize) -> Ps {
        let state = &mut self.cpus[cpu];
        let Mode::Working(segment) = state.mode else { return Ps::ZERO };
        state.mode = Mode::Running;
        segment.left(state.clock)
    }
}

/// Computes for as long as `amount` takes a thread that is alone on its core. Interrupts are
/// handled meanwhile, and siblings slow it down. Nothing outside of a simulated CPU.
pub fn work(amount: Ps) {
    work_until(amount, Ps::NEVER);
}

/// The same, but only until a time. Returns what is left to be done.
pub fn work_until(amount: Ps, limit: Ps) -> Ps {
    let mut left = amount;
    while left > Ps::ZERO && clock() < limit {
        match act(|_, _| Ps::NEVER, |world, cpu| world.begin_work(cpu, left, limit)) {
            None | Some(true) => return Ps::ZERO,
            Some(false) => {}
        }
        fiber::suspend();
        left = with(|world| world.running.map(|cpu| world.end_work(cpu)))
            .flatten()
            .unwrap_or(Ps::ZERO);
    }
    left
}

/// Waits for an interrupt, in the deepest idle state that pays until the event device comes.
///
/// Call it with interrupts disabled, after the last look at whether there is work: what comes
/// in between ends it at once. It is delivered when they are enabled again.
pub fn halt() {
    if act(|_, _| Ps::ZERO, |world, cpu| world.begin_halt(cpu)).is_none() {
        return;
    }
    fiber::suspend();
    with(|world| {
        if let Some(cpu) = world.running {
            world.end_halt(cpu);
        }
    });
}

/// Switches the CPU that runs off until a time: its event device forgets what it was told, and
/// interrupts that reach it meanwhile are lost. Its program stands still. Call it with interrupts
/// disabled.
pub fn power_off(until: Ps) {
    let went = act(
        |_, _| Ps::ZERO,
        |world, cpu| {
            world.count(cpu);
            let state = &mut world.cpus[cpu];
            state.masked += 1;
            state.mode = Mode::Waiting(until);
            if let Some(trace) = &mut world.trace {
                trace.begin(state.clock, cpu, "off");
            }
            world.leave_core(cpu);
        },
    );
    if went.is_none() {
        return;
    }
    fiber::suspend();
    with(|world| {
        let Some(cpu) = world.running else { return };
        let state = &mut world.cpus[cpu];
        // Of what was to come before and came meanwhile it knows nothing.
        state.inbox.clear();
        state.masked = state.masked.saturating_sub(1);
        state.mode = Mode::Running;
        if let Some(trace) = &mut world.trace {
            trace.end(state.clock, cpu);
        }
        world.join_core(cpu);
    });
}

/// Waits for a time, busy as far as its siblings can tell. Interrupts are handled meanwhile.
/// Nothing outside of a simulated CPU.
pub fn wait_until(at: Ps) {
    loop {
        let waits = act(
            |_, _| Ps::NEVER,
            |world, cpu| {
                world.count(cpu);
                let state = &mut world.cpus[cpu];
                if state.clock >= at {
                    return false;
                }
                state.mode = Mode::Waiting(at);
                true
            },
        );
        if waits != Some(true) {
            return;
        }
        fiber::suspend();
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.mode = Mode::Running;
            }
        });
    }
}
