//! Records what simulated CPUs do, for the trace viewers of Chrome and Perfetto.
//!
//! Open the file in `ui.perfetto.dev` or `chrome://tracing`. The viewer shows each simulated CPU as
//! a thread, in simulated time. Its track shows the tasks of the simulated kernel, the interrupts
//! within them, halts, reads of the shared counter, and writes of the CPU's timer device.

use crate::machine_state::with_running;
use crate::ps::Ps;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

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

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    entries: Vec<Entry>,
    is_requested: bool,
}

/// The highest number of events in a record; later ones are dropped. Trace viewers cannot open
/// files of more than some tens of megabytes.
const ENTRIES_MAX: usize = 300_000;

thread_local! {
    /// The state of a call of [`of`] on this thread: it waits for a machine to be made, or has the
    /// record of one.
    static REQUEST: RefCell<Request> = const { RefCell::new(Request::None) };
}

enum Request {
    None,
    /// A call of [`of`] is waiting: the next machine that is made on this thread must record its
    /// run.
    Record,
    Recorded(Trace),
}

/// Calls `f`. Returns its result, and the recorded run of the first machine that `f` has made.
pub fn of<R>(f: impl FnOnce() -> R) -> (R, Option<Trace>) {
    REQUEST.set(Request::Record);
    let result = f();
    match REQUEST.replace(Request::None) {
        Request::Recorded(trace) => (result, Some(trace)),
        Request::None | Request::Record => (result, None),
    }
}

pub(crate) fn begin_machine() -> Option<Trace> {
    let is_next = REQUEST.with_borrow(|request| matches!(request, Request::Record));
    is_next.then(|| {
        REQUEST.set(Request::None);
        Trace { is_requested: true, ..Trace::default() }
    })
}

pub(crate) fn end_machine(trace: Trace) {
    if trace.is_requested {
        REQUEST.set(Request::Recorded(trace));
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry {
    at: Ps,
    cpu: u16,
    event: Event,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Event {
    Begin(&'static str),
    End,
    Instant(&'static str),
}

impl Trace {
    pub(crate) fn push(&mut self, at: Ps, cpu: usize, event: Event) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(Entry { at, cpu: cpu as u16, event });
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the events as a JSON object in the format of Chrome's viewer. Times are in
    /// microseconds with six decimals: picoseconds, the machine's full precision.
    pub fn to_chrome_json(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let mut open = BTreeMap::new();
        let mut comma = "";
        let cpus: BTreeSet<u16> = self.entries.iter().map(|entry| entry.cpu).collect();
        for cpu in cpus {
            let _ = write!(
                json,
                "{comma}{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":{cpu},\
                 \"args\":{{\"name\":\"CPU {cpu}\"}}}}"
            );
            comma = ",\n";
        }
        for entry in &self.entries {
            let depth: &mut u32 = open.entry(entry.cpu).or_default();
            let what = match entry.event {
                Event::Begin(name) => {
                    *depth += 1;
                    format!("\"ph\":\"B\",\"name\":\"{name}\"")
                }
                // The beginning of this span was not recorded: the recording started within it.
                Event::End if *depth == 0 => continue,
                Event::End => {
                    *depth -= 1;
                    "\"ph\":\"E\"".to_string()
                }
                Event::Instant(name) => format!("\"ph\":\"i\",\"s\":\"t\",\"name\":\"{name}\""),
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
