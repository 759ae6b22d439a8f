//! Delivers interrupts: a handler runs on the stack of the program that it interrupts.

use crate::machine_state::{Handler, MachineState, with, with_running};
use crate::state::inbox::Vector;
use crate::state::timeline::Event;

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
        state.interrupts += 1;
        self.inside += 1;
        self.count(cpu);
        self.record(cpu, Event::Begin(vector.name()));
        Some((vector, self.handler.clone()))
    }

    fn end_interrupt(&mut self, cpu: usize) {
        self.inside = self.inside.saturating_sub(1);
        let state = &mut self.cpus[cpu];
        state.clock += self.costs.irq.exit;
        state.handlers = state.handlers.saturating_sub(1);
        state.masked = state.masked.saturating_sub(1);
        self.record(cpu, Event::End);
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
