//! Records what simulated CPUs do, for the trace viewers of Chrome and Perfetto.
//!
//! Open the file in `ui.perfetto.dev` or `chrome://tracing`. The viewer shows each simulated CPU as
//! a thread, in simulated time. Its track shows the tasks of the simulated kernel, the interrupts
//! within them, halts, reads of the shared counter, and writes of the CPU's timer device.

use crate::machine_state::with_running;
use crate::state::timeline::Event;

pub use crate::state::timeline::{Trace, of};

/// Begins a span (a named interval) on the track of the running CPU. It lasts until [`end`] is
/// called. Spans may be nested.
pub fn begin(name: &'static str) {
    with_running(|machine, cpu| machine.record(cpu, Event::Begin(name)));
}

pub fn end() {
    with_running(|machine, cpu| machine.record(cpu, Event::End));
}

pub fn instant(name: &'static str) {
    with_running(|machine, cpu| machine.record(cpu, Event::Instant(name)));
}
