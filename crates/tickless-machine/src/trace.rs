//! What happened when, for the trace viewers that exist: Chrome's and Perfetto's JSON.
//!
//! Open the file in `ui.perfetto.dev` or `chrome://tracing`. Each CPU is a thread of one
//! process; time is simulated.

use crate::ps::Ps;
use crate::world::with;
use std::fmt::Write;

/// What was recorded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry {
    at: Ps,
    cpu: u16,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Begin(&'static str),
    End,
    Instant(&'static str),
}

impl Trace {
    pub(crate) fn begin(&mut self, at: Ps, cpu: usize, name: &'static str) {
        self.entries.push(Entry { at, cpu: cpu as u16, what: What::Begin(name) });
    }

    pub(crate) fn end(&mut self, at: Ps, cpu: usize) {
        self.entries.push(Entry { at, cpu: cpu as u16, what: What::End });
    }

    fn instant(&mut self, at: Ps, cpu: usize, name: &'static str) {
        self.entries.push(Entry { at, cpu: cpu as u16, what: What::Instant(name) });
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is there nothing?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole as a JSON object with one key, `traceEvents`. Times are in microseconds, as
    /// the format wants them, with all digits that the machine has.
    pub fn to_chrome_json(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let mut open = std::collections::BTreeMap::new();
        let mut comma = "";
        for entry in &self.entries {
            let depth: &mut u32 = open.entry(entry.cpu).or_default();
            let what = match entry.what {
                What::Begin(name) => {
                    *depth += 1;
                    format!("\"ph\":\"B\",\"name\":\"{name}\"")
                }
                // What began before the recording did is left out.
                What::End if *depth == 0 => continue,
                What::End => {
                    *depth -= 1;
                    "\"ph\":\"E\"".to_string()
                }
                What::Instant(name) => format!("\"ph\":\"i\",\"s\":\"t\",\"name\":\"{name}\""),
            };
            let (us, rest) = (entry.at.0 / 1_000_000, entry.at.0 % 1_000_000);
            let cpu = entry.cpu;
            // Writing to a string does not fail.
            let _ = write!(json, "{comma}{{{what},\"ts\":{us}.{rest:06},\"pid\":0,\"tid\":{cpu}}}");
            comma = ",\n";
        }
        json.push_str("\n]}\n");
        json
    }
}

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
