//! What happened when, for the trace viewers that exist: Chrome's and Perfetto's JSON.
//!
//! Open the file in `ui.perfetto.dev` or `chrome://tracing`. Each CPU is a thread of one
//! process; time is simulated. On a CPU's track are the tasks of the little kernel, interrupts
//! within them, halts, reads of the shared counter, and writes of its event device.

use crate::ps::Ps;
use crate::world::with;

pub use crate::state::timeline::{Trace, of};

/// Something begins on the CPU that runs; ends with [`end`]. They nest.
pub fn begin(name: &'static str) {
    record(|trace, at, cpu| trace.begin(at, cpu, name));
}

/// What began last on the CPU that runs is over.
pub fn end() {
    record(Trace::end);
}

/// Something happens on the CPU that runs.
pub fn instant(name: &'static str) {
    record(|trace, at, cpu| trace.instant(at, cpu, name));
}

fn record(f: impl FnOnce(&mut Trace, Ps, usize)) {
    with(|world| {
        if let (Some(cpu), Some(trace)) = (world.running, &mut world.trace) {
            f(trace, world.cpus[cpu].clock, cpu);
        }
    });
}
