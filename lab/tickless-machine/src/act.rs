//! How a program on a simulated CPU acts on its machine. Before each action the program's fiber
//! waits until no other CPU has an earlier action, and handles the interrupts that are due.

use crate::coherence::{Access, Found};
use crate::cpu_state::{Mode, Vector, Waited};
use crate::fiber;
use crate::machine_state::{
    Delay, Handler, LineSharing, MachineState, WordSlot, with, with_cpu, with_running,
};
use crate::ps::Ps;
use tickless_core::time::CpuId;

/// Calls `f` as the running CPU, once it is that CPU's turn and no interrupt is due. It is a CPU's
/// turn while its clock exceeds those of the other CPUs by less than `ahead`. Returns `None`
/// outside any simulated CPU.
#[inline]
pub(crate) fn act<R>(ahead: Ps, f: impl FnOnce(&mut MachineState, usize) -> R) -> Option<R> {
    let mut f = Some(f);
    attempt(|machine, cpu| {
        machine.may_act(cpu, ahead)?;
        Ok(f.take().map(|f| f(machine, cpu)))
    })
    .flatten()
}

/// Calls `f` until it succeeds. After each failure, performs the wait that `f` returned: handles
/// the interrupts, or suspends the fiber until the CPU's turn.
#[inline]
fn attempt<R>(mut f: impl FnMut(&mut MachineState, usize) -> Result<R, Delay>) -> Option<R> {
    loop {
        match with_running(&mut f)? {
            Ok(result) => return Some(result),
            Err(Delay::Interrupt) => deliver(),
            Err(Delay::OtherCpus) => fiber::suspend(),
        }
    }
}

/// Accesses a word when it is this CPU's turn. A hit is allowed early: no other CPU can affect it
/// so soon.
#[inline]
pub(crate) fn access(place: &WordSlot, sharing: LineSharing, access: Access) {
    attempt(|machine, cpu| {
        let line = machine.line(place, sharing);
        let now = machine.cpus[cpu].clock;
        let found = machine.lines.find(line, CpuId(cpu as u16), access, now);
        let ahead = match found {
            Found::Here => machine.nearest,
            Found::Away => Ps::ZERO,
        };
        machine.may_act(cpu, ahead)?;
        machine.access(cpu, line, access, found);
        Ok(())
    });
}

/// Suspends the running CPU's fiber, after the caller has changed the CPU's mode. Changes the mode
/// back to [`Mode::Running`] when the engine resumes the fiber.
pub(crate) fn suspend() {
    fiber::suspend();
    with_cpu(|cpu| cpu.mode = Mode::Running);
}

/// Performs one round of a waiting loop, and adds the round's duration to the `sum` of the times
/// that the CPU has waited. The CPU is parked until another CPU writes a cache line that the loop
/// has read, or an interrupt is due.
pub(crate) fn relax_for(sum: fn(&mut Waited) -> &mut Ps) {
    let clock = || with_cpu(|cpu| cpu.clock).unwrap_or(Ps::ZERO);
    let begun = clock();
    let parked = act(Ps::ZERO, |machine, cpu| {
        machine.count(cpu);
        machine.park(cpu)
    });
    if parked == Some(true) {
        suspend();
    }
    let waited = clock() - begun;
    with_cpu(|cpu| *sum(&mut cpu.waited) += waited);
}

/// Called before a program takes a lock. While [`Machine::finish`](crate::engine::Machine::finish)
/// ends all programs, the calling program is suspended here for good, unless it is in an interrupt
/// handler. Returns false outside any simulated CPU, where no lock is contended.
pub(crate) fn begin_locking() -> bool {
    let may_lock = with_running(|machine, cpu| {
        let may_lock = !machine.draining || machine.cpus[cpu].handlers > 0;
        if may_lock {
            machine.inside += 1;
        } else {
            machine.switch_off(cpu);
        }
        may_lock
    });
    if may_lock == Some(false) {
        fiber::suspend();
    }
    may_lock == Some(true)
}

/// Ends a part of the code that holds a lock.
pub(crate) fn end_locking() {
    with_running(|machine, cpu| {
        let cpu = &mut machine.cpus[cpu];
        cpu.locks = cpu.locks.saturating_sub(1);
        machine.inside = machine.inside.saturating_sub(1);
    });
}

/// Records that a rule was broken, if the number of locks that this CPU holds breaks it.
pub(crate) fn check_locks(is_broken: impl Fn(u32) -> bool, rule: &'static str) {
    with(|machine| {
        if machine.cpu().is_some_and(|cpu| is_broken(cpu.locks)) {
            machine.broken_rule.get_or_insert(rule);
        }
    });
}

impl MachineState {
    fn begin_interrupt(&mut self, cpu: usize) -> Option<(Vector, Option<Handler>)> {
        let state = &mut self.cpus[cpu];
        if !state.is_interrupted() {
            return None;
        }
        let (at, vector) = state.inbox.take()?;
        state.clock = state.clock.max(at) + self.costs.irq.entry;
        state.masked += 1;
        state.handlers += 1;
        self.inside += 1;
        self.count(cpu);
        Some((vector, self.handler.clone()))
    }

    fn end_interrupt(&mut self, cpu: usize) {
        self.inside = self.inside.saturating_sub(1);
        let state = &mut self.cpus[cpu];
        state.clock += self.costs.irq.exit;
        state.handlers = state.handlers.saturating_sub(1);
        state.masked = state.masked.saturating_sub(1);
    }
}

/// Runs the interrupt handler for every interrupt that is due on the running CPU, and returns to
/// its program. Without a handler, the interrupts are discarded.
pub(crate) fn deliver() {
    let mut handled = false;
    while let Some((vector, handler)) = with_running(MachineState::begin_interrupt).flatten() {
        if let Some(handler) = handler {
            handler(vector);
            handled = true;
        }
        with_running(MachineState::end_interrupt);
    }
    if handled && let Some(hook) = with(|machine| machine.on_return.clone()).flatten() {
        hook();
    }
}
