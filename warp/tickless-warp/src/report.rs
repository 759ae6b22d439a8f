//! Which threads waited for what: process, thread, call, how often, and how long.

use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;

/// The waits of one thread in one system call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The number of the process.
    pub pid: i32,
    /// The program that the process runs.
    pub process: String,
    /// The number of the thread.
    pub tid: i32,
    /// The name of the thread.
    pub thread: String,
    /// The system call, or the timer.
    pub call: String,
    /// How often the thread waited, or the timer expired.
    pub waits: u64,
    /// How many of these waits ended because their time had passed.
    pub timeouts: u64,
    /// Seconds of virtual time that the thread waited. Waits of different threads overlap.
    pub waited_s: f64,
    /// The longest wait.
    pub longest_s: f64,
    /// Seconds by which the clock jumped to the end of these waits: without the waits, the program
    /// would take that much less time. The sum over all rows is the time of all jumps.
    pub jumped_s: f64,
}

/// A wait, for a timeline.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Span {
    /// The index of the row.
    pub row: usize,
    /// Seconds from the start of the run to the begin of the wait.
    pub begin_s: f64,
    /// Seconds from the start of the run to the end of the wait.
    pub end_s: f64,
}

/// Which threads waited for what, and how long.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The waits, in the order of `jumped_s`, then of `waited_s`, the longest first.
    pub rows: Vec<Row>,
    /// The first waits, at most 10,000.
    pub spans: Vec<Span>,
}

const SPANS_MAX: usize = 10_000;

/// What identifies a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Waiter {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) what: What,
}

/// A system call by its number, or a kind of timer, for which no thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum What {
    Call(i64),
    Timer(&'static str),
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Event,
    Timeout,
}

/// Collects the waits of a run.
#[derive(Debug, Default)]
pub(crate) struct Log {
    rows: HashMap<Waiter, usize>,
    report: Report,
}

impl Log {
    /// Returns the index of a waiter's row. `names` returns the names of the process, the thread
    /// and the call; it is called for a new row only.
    pub(crate) fn row(&mut self, waiter: Waiter, names: impl FnOnce() -> [String; 3]) -> usize {
        let rows = &mut self.report.rows;
        *self.rows.entry(waiter).or_insert_with(|| {
            let [process, thread, call] = names();
            let Waiter { pid, tid, .. } = waiter;
            rows.push(Row { pid, process, tid, thread, call, ..Row::default() });
            rows.len() - 1
        })
    }

    /// Adds a wait, which began and ended at these times since the start of the run.
    pub(crate) fn waited(&mut self, row: usize, begin: Duration, end: Duration, how: Ending) {
        let (begin_s, end_s) = (begin.as_secs_f64(), end.as_secs_f64());
        let of = &mut self.report.rows[row];
        of.waits += 1;
        of.timeouts += u64::from(how == Ending::Timeout);
        of.waited_s += end_s - begin_s;
        of.longest_s = of.longest_s.max(end_s - begin_s);
        if self.report.spans.len() < SPANS_MAX {
            self.report.spans.push(Span { row, begin_s, end_s });
        }
    }

    /// Adds a jump to the end of a wait.
    pub(crate) fn jumped(&mut self, row: usize, by: Duration) {
        self.report.rows[row].jumped_s += by.as_secs_f64();
    }

    /// Returns the report, with its rows in order.
    pub(crate) fn finish(self) -> Report {
        let Report { rows, mut spans } = self.report;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let key = |at: usize| (rows[at].jumped_s, rows[at].waited_s);
        order.sort_by(|a, b| key(*b).partial_cmp(&key(*a)).unwrap_or(std::cmp::Ordering::Equal));
        let mut places = vec![0; rows.len()];
        order.iter().zip(0..).for_each(|(row, place)| places[*row] = place);
        spans.iter_mut().for_each(|span| span.row = places[span.row]);
        Report { rows: order.iter().map(|row| rows[*row].clone()).collect(), spans }
    }
}
