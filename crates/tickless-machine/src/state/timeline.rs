//! The events of a recorded run, and the JSON that trace viewers read.

use crate::ps::Ps;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A recorded run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    entries: Vec<Entry>,
    /// A call of [`of`] collects it.
    is_requested: bool,
}

/// Later events are not recorded: viewers accept some tens of megabytes.
const ENTRIES_MAX: usize = 300_000;

thread_local! {
    /// The request of a running call of [`of`].
    static REQUEST: RefCell<Request> = const { RefCell::new(Request::None) };
}

enum Request {
    None,
    /// The next machine on this thread must record.
    Record,
    /// The machine has recorded this.
    Recorded(Trace),
}

/// Calls `f`, and returns with its result what the first machine that it made has recorded.
pub fn of<R>(f: impl FnOnce() -> R) -> (R, Option<Trace>) {
    REQUEST.set(Request::Record);
    let result = f();
    match REQUEST.replace(Request::None) {
        Request::Recorded(trace) => (result, Some(trace)),
        Request::None | Request::Record => (result, None),
    }
}

/// Returns the record of a new machine, if one is requested.
pub(crate) fn begin_machine() -> Option<Trace> {
    let is_next = REQUEST.with_borrow(|request| matches!(request, Request::Record));
    is_next.then(|| {
        REQUEST.set(Request::None);
        Trace { is_requested: true, ..Trace::default() }
    })
}

/// Hands over the record of a machine that is dropped.
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

    /// The number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the events as a JSON object in the format of Chrome's viewer. Times are microseconds
    /// with six decimals, the machine's full precision.
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
                // Its beginning was not recorded.
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
