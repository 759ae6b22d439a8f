//! Runs the checks on an implementation of timers, and shows the faults that they have found.

use crate::checks::{checks, random_histories};
use crate::fault::Fault;
use crate::history::Op;
use crate::measure::{Measured, measure};
use crate::play::play;
use crate::shrink::shrink;
use crate::source::test_source;
use crate::timers::Timers;
use comfy_table::{ContentArrangement, Table, TableStyle};
use core::fmt;
use serde::Serialize;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How thoroughly a set of timers is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    pub histories: usize,
    pub seed: u64,
    /// The time limit of one check. A check that takes longer is reported as hanging, and its
    /// thread is left behind.
    pub limit: Duration,
    /// Whether lateness, clusters and memory are measured, with hundreds of thousands of timers.
    pub measure: bool,
}

impl Default for Effort {
    /// 2,000 histories, 20 seconds for each check, and all measurements.
    fn default() -> Effort {
        Effort { histories: 2_000, seed: 1, limit: Duration::from_secs(20), measure: true }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    pub name: String,
    pub checks: Vec<Checked>,
    /// The measurements; `None` if they hung or panicked, or if [`Effort::measure`] is false.
    pub measured: Option<Measured>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Checked {
    pub check: String,
    pub verdict: Verdict,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// The timers kept their promises in this many histories.
    Kept { histories: usize },
    /// The timers do not offer what the check needs.
    NotOffered,
    /// A promise was broken.
    Broken {
        fault: Fault,
        /// The shortest history found.
        history: Vec<Op>,
        test: String,
    },
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.checks.iter().all(|checked| !matches!(checked.verdict, Verdict::Broken { .. }))
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// Returns an error if `serde_json` cannot write the report.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// Runs all checks on the timers `T`.
pub fn check<T: Timers + 'static>(effort: Effort) -> Report {
    let named = checks::<T>().into_iter().map(|(name, histories)| Checked {
        check: name.to_owned(),
        verdict: within(effort, move || judge::<T>(histories())),
    });
    let random = Checked {
        check: "random histories".to_owned(),
        verdict: within(effort, move || {
            judge::<T>(random_histories::<T>(effort.seed, effort.histories))
        }),
    };
    Report {
        name: T::NAME.to_owned(),
        checks: named.chain([random]).collect(),
        measured: effort.measure.then(|| on_a_thread(effort.limit, measure::<T>)).flatten(),
    }
}

/// Plays the histories of a check. The first that fails is shortened, and becomes a test.
fn judge<T: Timers>(histories: impl IntoIterator<Item = Vec<Op>>) -> Verdict {
    let mut count = 0;
    for history in histories {
        count += 1;
        if let Err(fault) = play::<T>(&history) {
            let (history, fault) = shrink::<T>(history, fault);
            let test = test_source::<T>(&history, &fault);
            return Verdict::Broken { fault, history, test };
        }
    }
    if count == 0 { Verdict::NotOffered } else { Verdict::Kept { histories: count } }
}

/// Runs a check on a thread of its own, and gives up after the time limit.
fn within(effort: Effort, run: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
    on_a_thread(effort.limit, run).unwrap_or_else(|| Verdict::Broken {
        fault: Fault::Hung { seconds: effort.limit.as_secs() },
        history: Vec::new(),
        test: String::new(),
    })
}

/// Runs `run` on a thread of its own, because the timers under test can panic or hang. Returns its
/// result, or `None` if it panicked or took longer than `limit`.
fn on_a_thread<R: Send + 'static>(
    limit: Duration,
    run: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(limit).ok()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        for Checked { check, verdict } in &self.checks {
            let result = match verdict {
                Verdict::Kept { histories } => format!("kept ({histories} histories)"),
                Verdict::NotOffered => "not offered".to_owned(),
                Verdict::Broken { fault, .. } => format!("BROKEN: {fault}"),
            };
            table.add_row([check, &result]);
        }
        if let Some(measured) = self.measured {
            let Measured { lateness_ns, promised_ns, cluster, growth_bytes } = measured;
            let late = format!("at most {lateness_ns} ns, promised {promised_ns}");
            table.add_row(["lateness", &late]);
            table.add_row(["a cluster: p99.99 over median", &format!("{cluster:.0}")]);
            table.add_row(["memory after churn", &format!("{growth_bytes:+} bytes")]);
        }
        writeln!(f, "{}\n{table}", self.name)?;
        for Checked { check, verdict } in &self.checks {
            if let Verdict::Broken { test, .. } = verdict {
                write!(f, "\n// {check}\n{test}")?;
            }
        }
        Ok(())
    }
}
