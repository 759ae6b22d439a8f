//! What happened when, as entries, and the JSON that trace viewers read.

use crate::ps::Ps;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What was recorded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    entries: Vec<Entry>,
    /// Somebody waits for it in [`of`].
    is_wanted: bool,
}

/// More is not recorded: viewers take some tens of megabytes.
const ENTRIES_MAX: usize = 300_000;

thread_local! {
    /// What is to become of the next machine's record on this thread.
    static WANTED: RefCell<Wanted> = const { RefCell::new(Wanted::Nothing) };
}

enum Wanted {
    Nothing,
    /// The next machine records.
    Next,
    /// It did.
    Taken(Trace),
}

/// Does something, and hands back what the first machine recorded that it made.
pub fn of<R>(f: impl FnOnce() -> R) -> (R, Option<Trace>) {
    WANTED.set(Wanted::Next);
    let result = f();
    match WANTED.replace(Wanted::Nothing) {
        Wanted::Taken(trace) => (result, Some(trace)),
        Wanted::Nothing | Wanted::Next => (result, None),
    }
}

/// A machine is made: its record, if one is wanted.
pub(crate) fn begin_machine() -> Option<Trace> {
    let is_next = WANTED.with_borrow(|wanted| matches!(wanted, Wanted::Next));
    is_next.then(|| {
        WANTED.set(Wanted::Nothing);
        Trace { is_wanted: true, ..Trace::default() }
    })
}

/// A machine is gone.
pub(crate) fn end_machine(trace: Trace) {
    if trace.is_wanted {
        WANTED.set(Wanted::Taken(trace));
    }
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
        self.push(at, cpu, What::Begin(name));
    }

    pub(crate) fn end(&mut self, at: Ps, cpu: usize) {
        self.push(at, cpu, What::End);
    }

    pub(crate) fn instant(&mut self, at: Ps, cpu: usize, name: &'static str) {
        self.push(at, cpu, What::Instant(name));
    }

    fn push(&mut self, at: Ps, cpu: usize, what: What) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(Entry { at, cpu: cpu as u16, what });
        }
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
