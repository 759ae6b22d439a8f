//! Recorded runs for the trace viewers: Chrome's and Perfetto's JSON.
//!
//! Open the file in `ui.perfetto.dev` or `chrome://tracing`. Each CPU is a thread of one process;
//! times are simulated. A CPU's track shows the little kernel's tasks, the interrupts within them,
//! halts, reads of the shared counter, and writes of the CPU's event device.

use crate::machine_state::with_running;
use crate::state::timeline::Event;

pub use crate::state::timeline::{Trace, of};

/// Begins a span on the running CPU, until [`end`]. Spans nest.
pub fn begin(name: &'static str) {
    with_running(|machine, cpu| machine.record(cpu, Event::Begin(name)));
}

/// Ends the innermost span of the running CPU.
pub fn end() {
    with_running(|machine, cpu| machine.record(cpu, Event::End));
}

/// Records an instant on the running CPU.
pub fn instant(name: &'static str) {
    with_running(|machine, cpu| machine.record(cpu, Event::Instant(name)));
}
