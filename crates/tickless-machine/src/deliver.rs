//! Delivering interrupts: the handler runs on the stack of what it interrupts.

use crate::state::inbox::Vector;
use crate::world::{Handler, World, with};

impl World {
    fn begin_interrupt(&mut self) -> Option<(Vector, Handler)> {
        let cpu = self.running?;
        let handler = self.handler.clone();
        let state = &mut self.cpus[cpu];
        let (at, vector) = state.inbox.take()?;
        state.clock = state.clock.max(at) + self.costs.irq.entry;
        state.masked += 1;
        state.handlers += 1;
        self.inside += 1;
        state.count_interrupt();
        let now = state.clock;
        self.count(cpu);
        if let Some(trace) = &mut self.trace {
            trace.begin(now, cpu, vector.name());
        }
        // A machine without a handler loses them.
        match handler {
            Some(handler) => Some((vector, handler)),
            None => {
                self.end_interrupt();
                None
            }
        }
    }

    fn end_interrupt(&mut self) {
        let Some(cpu) = self.running else { return };
        let exit = self.costs.irq.exit;
        self.inside = self.inside.saturating_sub(1);
        let state = &mut self.cpus[cpu];
        state.clock += exit;
        state.handlers = state.handlers.saturating_sub(1);
        state.masked = state.masked.saturating_sub(1);
        let now = state.clock;
        if let Some(trace) = &mut self.trace {
            trace.end(now, cpu);
        }
    }
}

/// Delivers every interrupt that is due on the CPU that runs, and goes back to its program.
pub(crate) fn deliver() {
    let mut delivered = false;
    loop {
        let due = with(|world| {
            let cpu = world.running?;
            if world.cpus[cpu].is_interrupted() { world.begin_interrupt() } else { None }
        });
        let Some((vector, handler)) = due.flatten() else { break };
        handler(vector);
        with(World::end_interrupt);
        delivered = true;
    }
    if delivered && let Some(hook) = with(|world| world.on_return.clone()).flatten() {
        hook();
    }
}
